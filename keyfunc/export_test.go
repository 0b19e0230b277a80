package keyfunc

// ForgetHashPepper undoes SetHashPepper.
func ForgetHashPepper() { hashPepper.Store(nil) }
