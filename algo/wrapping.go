package algo

// wrapping is a limiter over another one.
type wrapping struct{ limiter Limiter }

// Unwrap returns the wrapped limiter.
func (w *wrapping) Unwrap() []Limiter { return []Limiter{w.limiter} }
