package early

// ResetWarnings makes each problem be logged again.
func ResetWarnings() { warnPreface.Reset() }
