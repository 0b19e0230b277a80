package clientip

// ResetWarnings makes the warnings appear again.
func ResetWarnings() {
	warnIgnored.logged.Store(false)
	warnTrustsAll.logged.Store(false)
}
