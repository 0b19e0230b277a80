package clientip

// ResetWarnings makes the warnings appear again.
func ResetWarnings() {
	warnIgnored.Reset()
	warnElsewhere.Reset()
	warnUnreadable.Reset()
	warnTrustsAll.Reset()
}
