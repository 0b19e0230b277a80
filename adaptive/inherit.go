package adaptive

// While more is in flight than a limit that fell allows, a request inherits every second slot that
// ends, if lower classes ask too: else a limit that comes and goes would deny all classes each time.
// The work in flight falls nevertheless.

const (
	freedPer  = 2       // slots that end for each that is inherited
	mostFreed = keepFew // slots that count at once: a burst inherits no more, and not those of long ago
)

// ended notes that n slots have ended while more is in flight than the limit.
func (o *order) ended(n int64) {
	if o.freed.Load() < mostFreed {
		o.freed.Add(n)
	}
}

// inherits reports whether a request that finds no slot gets some that have ended, and takes them.
func (o *order) inherits(c *claim, at int64) bool {
	if !o.lowerAsked(c.rank/places, at) {
		return false
	}
	for {
		freed := o.freed.Load()
		if freed < freedPer*c.n {
			return false
		}
		if o.freed.CompareAndSwap(freed, freed-freedPer*c.n) {
			return true
		}
	}
}

// lowerAsked reports whether a request of a lower class arrived lately.
func (o *order) lowerAsked(class rank, at int64) bool {
	for r := (class + 1) * places; r < ranks; r++ {
		if asked := o.asked[r].Load(); asked > 0 && at-asked < strainMemory {
			return true
		}
	}
	return false
}

// inherit takes n slots above the limit, within its upper bound.
func (l *Limiter) inherit(n int64) (inFlight int64, ok bool) {
	for {
		all := l.inFlight.Load()
		if inFlight = l.working(all); n > l.max-inFlight {
			return inFlight, false
		}
		if l.inFlight.CompareAndSwap(all, all+n) {
			return inFlight + n, true
		}
	}
}
