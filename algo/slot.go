package algo

// SlotOccupier is implemented by limiters that know whether a lease of theirs holds
// something until it is released. A wrapper answers for what it wraps, with
// [OccupiesSlot], and must not depend on a state that can change.
type SlotOccupier interface {
	OccupiesSlot() bool
}

// OccupiesSlot reports whether an admission by l may hold something, such as a place
// in flight, that is free again only when the lease is released. Limits on what
// is spent over time hold nothing: releasing their leases late does no harm, and
// so adapters save themselves the watching for the moment.
//
// It is true unless l is known to hold nothing: by its answer as a [SlotOccupier], or
// because it has a rate that can be set, SetRate(Rate) error, and is described
// in another unit than [ConcurrentRequests]. For [ByKey], whose choice may be
// anything, it is true.
func OccupiesSlot(l Limiter) bool {
	switch l := l.(type) {
	case SlotOccupier:
		return l.OccupiesSlot()
	case part: // all of them are limits over time
		return false
	}
	d, ok := Describe(l)
	_, rated := l.(interface{ SetRate(Rate) error })
	return !ok || !rated || d.Unit == ConcurrentRequests
}

// OccupiesSlot answers for the limiter, whether it is on or off.
func (s *Switch) OccupiesSlot() bool { return OccupiesSlot(s.limiter) }

func (s *shadow) OccupiesSlot() bool { return OccupiesSlot(s.limiter) }

// OccupiesSlot answers for the limiter.
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
