package clientip

// ResetWarnings makes the warnings appear again.
func ResetWarnings() {
	warnIgnored.Reset()
	warnTrustsAll.Reset()
}
