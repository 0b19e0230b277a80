package metered

// ResetWarnings makes the next problem of a kind be logged again.
func ResetWarnings() { warnAboveMost.Reset() }
