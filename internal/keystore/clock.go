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

// Clock reads monotonic time in ticks since its start. It counts for 4.5 years. Start is a field,
// so that testing/synctest controls the time of a store made in its bubble.
type Clock struct {
	Start time.Time
	given *given // nil: the system's clock
}

// StartClock starts a clock one nanosecond ago, because a reading must be above 0, the word of an
// unused key. now tells the time; nil: the system.
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

// given is a clock that a user has given. A reading before the latest one counts as the latest. A
// step of more than a year counts as a year, after which every limit has forgotten everything.
type given struct {
	now    func() time.Time
	mu     sync.Mutex
	latest time.Time
	ticks  int64
}

const mostStep = 366 * 24 * time.Hour

func (g *given) read() (wall time.Time, now int64) {
	g.mu.Lock() // before the reading: a late one would be a step back
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

// Reading is one reading for several clocks. The zero Reading is not yet taken.
type Reading struct {
	Clock *Clock // nil: not taken
	Ticks int64
}

// Of returns c's value at the reading, which it takes if necessary. A reading from before c's start
// counts as the start: below 0 every state would lie in the future. A given clock is read
// separately.
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

// OrNow is Of, or Now for a nil r.
func (r *Reading) OrNow(c *Clock) int64 {
	if r == nil {
		return Now
	}
	return r.Of(c)
}

// ToTicks converts d and saturates at the longest duration.
func ToTicks(d time.Duration) int64 { return int64(min(d, mostTicks)) << tickShift }

const mostTicks time.Duration = 1<<(63-tickShift) - 1

// ToDuration converts ticks and rounds up: a caller that waits for the result
// is never early.
func ToDuration(ticks int64) time.Duration {
	return time.Duration((ticks + TicksPerNano - 1) >> tickShift)
}
