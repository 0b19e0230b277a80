package algo

// SlotOccupier is implemented by limiters that know whether their leases occupy
// a slot until they are released. A wrapper returns [OccupiesSlot] of the
// limiter it wraps. The result must not depend on a state that can change.
type SlotOccupier interface {
	OccupiesSlot() bool
}

// OccupiesSlot reports whether an admission by l may occupy a slot, such as a
// place in flight, until its lease is released. Leases of limits over time
// occupy none: a late Release is harmless, and the adapters skip the work of
// releasing them at the exact moment.
//
// It is true unless l is known to occupy no slot: as a [SlotOccupier], or
// because it has the method SetRate(Rate) error and a [Description] in a unit
// other than [ConcurrentRequests]. It is true for [ByKey], which may select any
// limiter.
func OccupiesSlot(l Limiter) bool {
	if s, ok := l.(SlotOccupier); ok {
		return s.OccupiesSlot()
	}
	if hasEngine(l) {
		return false // a limit over time
	}
	d, ok := Describe(l)
	_, rated := l.(interface{ SetRate(Rate) error })
	return !ok || !rated || d.Unit == ConcurrentRequests
}
