package algo

// wrapping is a limiter over another one, which describes and configures it.
type wrapping struct{ limiter Limiter }

// Describe returns the [Description] of the wrapped limiter.
func (w *wrapping) Describe() (Description, bool) { return Describe(w.limiter) }

// Unwrap returns the wrapped limiter.
func (w *wrapping) Unwrap() []Limiter { return []Limiter{w.limiter} }
