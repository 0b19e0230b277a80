package keystore

import (
	"sync"
	"time"
)

// The unit of every instant and span is the tick, 1/64 ns.
//
// Whole nanoseconds would be too coarse: at 600e6 units a second each costs
// 1.67 ns, and truncating that to 1 ns runs 67 % too fast.
const (
	tickShift = 6

	// TicksPerNano is the number of ticks in a nanosecond.
	TicksPerNano = 1 << tickShift
)

// Clock reads monotonic time in ticks since its start. It counts for 4.5
// years. The start is a field and not a package variable, so that
// testing/synctest can replace the time of a store made in its bubble.
type Clock struct {
	Start time.Time
	given *given // nil: the system's clock
}

// StartClock starts a clock one nanosecond ago: the word 0 is a key that was
// never used, so a reading must be above it. Time is that of now, or of the system
// if now is nil.
func StartClock(now func() time.Time) Clock {
	if now == nil {
		return Clock{Start: time.Now().Add(-time.Nanosecond)}
	}
	t := now()
	return Clock{t.Add(-time.Nanosecond), &given{now: now, latest: t, ticks: TicksPerNano}}
}

// Now reads the clock. A reading takes about 25 ns, most of a decision, so a
// decision takes one.
func (c *Clock) Now() int64 {
	if c.given != nil {
		_, now := c.given.read()
		return now
	}
	return c.system()
}

// Wall reads the wall clock, and Now of the same moment.
func (c *Clock) Wall() (wall time.Time, now int64) {
	if c.given != nil {
		return c.given.read()
	}
	wall = time.Now()
	return wall.Round(0), ToTicks(wall.Sub(c.Start))
}

// system is Now of the system's clock; it is inlined.
func (c *Clock) system() int64 { return ToTicks(time.Since(c.Start)) }

// given is a clock that a user has given. A reading before the latest one counts as the
// latest. A step of more than a year takes a year, in which every limit has forgotten
// everything.
type given struct {
	now    func() time.Time
	mu     sync.Mutex
	latest time.Time
	ticks  int64
}

const mostStep = 366 * 24 * time.Hour

func (g *given) read() (wall time.Time, now int64) {
	g.mu.Lock() // before the reading: one that is late would be a step back
	defer g.mu.Unlock()
	t := g.now()
	if step := t.Sub(g.latest); step >= 0 {
		g.latest = t
		g.ticks += ToTicks(min(step, mostStep))
	}
	if g.ticks < 0 {
		g.ticks = ToTicks(mostTicks)
	}
	return g.latest.Round(0), g.ticks
}

// Reading is one reading for several clocks. The zero Reading is still to be taken.
type Reading struct {
	Clock *Clock // nil: not taken
	Ticks int64
}

// Of returns the value of c at the reading, and takes the reading first if
// need be. A reading from before c was started counts as its start: below 0 every state
// would lie in the future. A clock that was given is read by itself.
func (r *Reading) Of(c *Clock) int64 {
	if r.Clock == nil {
		r.Clock, r.Ticks = c, c.Now()
		return r.Ticks
	}
	if c.given != nil || r.Clock.given != nil {
		return c.Now()
	}
	return max(r.Ticks+ToTicks(r.Clock.Start.Sub(c.Start)), TicksPerNano)
}

// OrNow is Of, and Now without a reading.
func (r *Reading) OrNow(c *Clock) int64 {
	if r == nil {
		return Now
	}
	return r.Of(c)
}

// ToTicks converts d, and saturates at the largest duration that ticks hold.
func ToTicks(d time.Duration) int64 { return int64(min(d, mostTicks)) << tickShift }

const mostTicks time.Duration = 1<<(63-tickShift) - 1

// ToDuration converts ticks and rounds up: a caller that waits for the result
// is never early.
func ToDuration(ticks int64) time.Duration {
	return time.Duration((ticks + TicksPerNano - 1) >> tickShift)
}
