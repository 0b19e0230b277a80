package algo

// ResetWarnings makes the next problem of a kind be logged again.
func ResetWarnings() {
	warnMixed.Reset()
	warnNegative.Reset()
	warnSettledTwice.Reset()
}
