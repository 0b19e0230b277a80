package algo

// Holder is implemented by limiters that know whether a lease of theirs holds
// something until it is released. A wrapper answers for what it wraps, with
// [Holds], and must not depend on a state that can change.
type Holder interface {
	Holds() bool
}

// Holds reports whether an admission by l may hold something, such as a place
// in flight, that is free again only when the lease is released. Limits on what
// is spent over time hold nothing: releasing their leases late does no harm, and
// so adapters save themselves the watching for the moment.
//
// It is true unless l is known to hold nothing: by its answer as a [Holder], or
// because it has a rate that can be set, SetRate(Rate) error, and is described
// in another unit than [ConcurrentRequests]. For [ByKey], whose choice may be
// anything, it is true.
func Holds(l Limiter) bool {
	switch l := l.(type) {
	case Holder:
		return l.Holds()
	case part: // all of them are limits over time
		return false
	}
	d, ok := Describe(l)
	_, rated := l.(interface{ SetRate(Rate) error })
	return !ok || !rated || d.Unit == ConcurrentRequests
}

// Holds answers for the limiter, whether it is on or off.
func (s *Switch) Holds() bool { return Holds(s.limiter) }

func (s *shadow) Holds() bool { return Holds(s.limiter) }

// Holds answers for the limiter.
func (e *Escalate) Holds() bool { return Holds(e.limiter) }

func (w *listed) Holds() bool { return Holds(w.limiter) }

func (a *all) Holds() bool {
	for _, l := range a.limiters {
		if Holds(l) {
			return true
		}
	}
	return false
}

func (unlimited) Holds() bool { return false }
func (refusing) Holds() bool  { return false }
func (*foreign) Holds() bool  { return false }
