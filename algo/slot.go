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
	switch l := l.(type) {
	case SlotOccupier:
		return l.OccupiesSlot()
	case part: // a limit over time
		return false
	}
	d, ok := Describe(l)
	_, rated := l.(interface{ SetRate(Rate) error })
	return !ok || !rated || d.Unit == ConcurrentRequests
}

// OccupiesSlot reports whether the limiter does, on or off.
func (s *Switch) OccupiesSlot() bool { return OccupiesSlot(s.limiter) }

func (s *shadow) OccupiesSlot() bool { return OccupiesSlot(s.limiter) }

// OccupiesSlot reports whether the limiter does.
func (e *Ban) OccupiesSlot() bool { return OccupiesSlot(e.limiter) }

func (w *listed) OccupiesSlot() bool { return OccupiesSlot(w.limiter) }

func (a *all) OccupiesSlot() bool {
	for _, l := range a.limiters {
		if OccupiesSlot(l) {
			return true
		}
	}
	return false
}

func (unlimited) OccupiesSlot() bool { return false }
func (refusing) OccupiesSlot() bool  { return false }
func (*foreign) OccupiesSlot() bool  { return false }
