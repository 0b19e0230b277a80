package keystore

import "time"

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
type Clock struct{ Start time.Time }

// StartClock starts a clock one nanosecond ago: the word 0 is a key that was
// never used, so a reading must be above it.
func StartClock() Clock { return Clock{time.Now().Add(-time.Nanosecond)} }

// Now reads the clock. A reading takes about 25 ns, most of a decision, so a
// decision takes one.
func (c Clock) Now() int64 { return ToTicks(time.Since(c.Start)) }

// Reading is one reading for several clocks. The zero Reading is still to be taken.
type Reading struct {
	Clock *Clock // nil: not taken
	Ticks int64
}

// Of returns the value of c at the reading, and takes the reading first if
// need be. A reading from before c was started counts as its start: below 0 every state
// would lie in the future.
func (r *Reading) Of(c *Clock) int64 {
	if r.Clock == nil {
		r.Clock, r.Ticks = c, c.Now()
		return r.Ticks
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
func ToTicks(d time.Duration) int64 {
	const most = 1<<(63-tickShift) - 1
	return int64(min(d, most)) << tickShift
}

// ToDuration converts ticks and rounds up: a caller that waits for the result
// is never early.
func ToDuration(ticks int64) time.Duration {
	return time.Duration((ticks + TicksPerNano - 1) >> tickShift)
}
