package keyfunc

// ForgetHashPepper undoes SetHashPepper.
func ForgetHashPepper() { hashPepper.Store(nil) }

// ResetWarnings makes the warnings appear again.
func ResetWarnings() { warnUnmatched.Reset() }
