package adaptive

// When a limit of [Default] falls, more is in flight than it allows. While new work would still be in
// time and lower classes ask too, a class inherits every second slot that ends. Otherwise a limit
// that comes and goes would deny all classes each time. The work in flight falls nevertheless.

const (
	freedPer  = 2            // ended slots per inherited slot
	mostFreed = 2 * freedPer // that count at once, so that a burst inherits no more
)

// freeAbove counts a slot that ended while more is in flight than the limit.
func (o *order) freeAbove() {
	if o.freed.Load() < mostFreed {
		o.freed.Add(1)
	}
}

// inherits lets a request without a slot take over slots that ended above the limit, and consumes
// them. It leaves as many to higher ranks.
func (o *order) inherits(c *claim, at int64) bool {
	if !o.asks((c.rank/places+1)*places, ranks, at) {
		return false
	}
	needs := int64(freedPer)
	if o.asks(0, c.rank, at) {
		needs = mostFreed
	}
	for {
		freed := o.freed.Load()
		if freed < needs {
			return false
		}
		if o.freed.CompareAndSwap(freed, freed-freedPer) {
			return true
		}
	}
}

// asks reports whether any rank in [first, end) had a request within strainMemory.
func (o *order) asks(first, end rank, at int64) bool {
	for r := first; r < end; r++ {
		if asked := o.asked[r].Load(); asked > 0 && at-asked < strainMemory {
			return true
		}
	}
	return false
}

// inherit takes a slot above the limit, within its upper bound, if the request inherits one.
func (l *Limiter) inherit(a *arrival) (inFlight int64, ok bool) {
	if l.tooLate == nil || !a.known || l.tooLate() || !l.order.inherits(&a.claim, a.at) {
		return 0, false
	}
	for {
		all := l.inFlight.Load()
		if inFlight = l.working(all); inFlight >= l.max {
			return inFlight, false
		}
		if l.inFlight.CompareAndSwap(all, all+1) {
			return inFlight + 1, true
		}
	}
}
