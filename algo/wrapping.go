package algo

// wrapping is a limiter over another one, which describes and configures it.
type wrapping struct{ limiter Limiter }

// Describe returns the [Description] of the wrapped limiter.
func (w *wrapping) Describe() (Description, bool) { return Describe(w.limiter) }

// OccupiesSlot returns [OccupiesSlot] of the wrapped limiter.
func (w *wrapping) OccupiesSlot() bool { return OccupiesSlot(w.limiter) }

func (w *wrapping) wrapped() Limiter { return w.limiter }

// SetSpec applies spec to the wrapped limiter; see [Spec.Apply].
func (w *wrapping) SetSpec(spec Spec) error { return spec.Apply(w.limiter) }
