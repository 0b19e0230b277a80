package meter

// ResetWarnings makes the next problem of a kind be logged again.
func ResetWarnings() {
	warnNegative.Reset()
	warnSettledTwice.Reset()
}
