package keyfunc

// ForgetHashPepper ends what SetHashPepper began.
func ForgetHashPepper() { hashPepper.Store(nil) }
