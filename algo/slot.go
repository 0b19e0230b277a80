package algo

import "slices"

// SlotOccupier is implemented by limiters that know whether their leases occupy
// a slot until they are released. A [Wrapper] needs it only if its own leases do. The result must not depend on a state that can change.
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
// other than [ConcurrentRequests]. It is true for [ByKey] of limiters that are not
// listed, which may select any.
func OccupiesSlot(l Limiter) bool {
	if s, ok := l.(SlotOccupier); ok {
		return s.OccupiesSlot()
	}
	if _, ok := l.(*RateLimiter); ok {
		return false // a limit over time
	}
	if w, ok := l.(Wrapper); ok && len(w.Unwrap()) > 0 {
		return slices.ContainsFunc(w.Unwrap(), OccupiesSlot)
	}
	d, ok := Describe(l)
	_, rated := l.(interface{ SetRate(Rate) error })
	return !ok || !rated || d.Unit == ConcurrentRequests
}
