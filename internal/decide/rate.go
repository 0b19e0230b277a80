package decide

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// MaxSpan bounds how far a limit may look ahead: burst * period / count + wait.
// It leaves room for a process that runs for more than a year without any sum
// overflowing.
const MaxSpan = 365 * 24 * time.Hour

// Resolution defines the tick, the unit of instants and spans. A clock reads whole steps of one or
// more ticks.
type Resolution struct {
	step  time.Duration
	shift uint8 // 2^shift ticks are one step
	name  string
}

var (
	// Nanoseconds divides the nanosecond of a local clock into 64 ticks. Whole
	// nanoseconds would be too coarse: 600e6 units a second cost 1.67 ns each,
	// and truncating that to 1 runs 67 % too fast. Ticks last for 4.5 years.
	Nanoseconds = Resolution{time.Nanosecond, 6, "1e9 per second (algo.Unlimited admits everything)"}
	// Microseconds has ticks of 1 µs, as the clock of Redis.
	Microseconds = Resolution{time.Microsecond, 0, "1e6 per second: count in larger units, such as KiB"}
)

// Ticks converts d, rounding down to whole steps and saturating at the largest span.
func (r Resolution) Ticks(d time.Duration) int64 {
	return min(int64(d/r.step), math.MaxInt64>>r.shift) << r.shift
}

// Duration converts ticks, rounding up: a caller that waits for the result is never early.
func (r Resolution) Duration(ticks int64) time.Duration {
	return time.Duration((ticks+r.stepTicks()-1)>>r.shift) * r.step
}

// stepTicks returns the number of ticks in a step.
func (r Resolution) stepTicks() int64 { return 1 << r.shift }

// maxSpan returns MaxSpan in ticks.
func (r Resolution) maxSpan() int64 { return r.Ticks(MaxSpan) }

// Rate is Count units in each Period, on a clock of that resolution.
type Rate struct {
	Count  int64
	Period time.Duration
	Resolution
}

// Validate checks that the rate lies between 1 in a year and one unit a step.
// The error names field and value.
func (r Rate) Validate() error {
	switch {
	case r.Count == 0:
		return fmt.Errorf("rate: count is 0, want 1 or more (algo.DenyAll denies everything)")
	case r.Count < 0:
		return fmt.Errorf("rate: count is %d, want 1 or more", r.Count)
	case r.Period <= 0:
		return fmt.Errorf("rate: period is %v, want more than 0", r.Period)
	case r.Period > MaxSpan:
		return fmt.Errorf("rate: period is %v, want at most %v", r.Period, MaxSpan)
	case r.Count > int64(r.Period/r.step):
		return fmt.Errorf("rate: %v is faster than %s", r, r.name)
	}
	return nil
}

// Periods are the periods with a name: Short is written in a rate, Long in a policy's name, and
// Other is read too.
var Periods = []struct {
	Length             time.Duration
	Short, Long, Other string
}{
	{time.Second, "s", "second", "sec"},
	{time.Minute, "min", "minute", "m"},
	{time.Hour, "h", "hour", "h"},
	{Day, "day", "day", "d"},
	{Week, "week", "week", "week"},
	{Month, "month", "month", "month"},
	{Quarter, "quarter", "quarter", "quarter"},
}

// String returns the rate as count/period: "100/s", "5/15m0s".
func (r Rate) String() string {
	for _, p := range Periods {
		if p.Length == r.Period {
			return fmt.Sprintf("%d/%s", r.Count, p.Short)
		}
	}
	return fmt.Sprintf("%d/%s", r.Count, r.Period)
}

// emission returns the time of one unit, in ticks, rounded up so that the limit is never faster
// than requested.
func (r Rate) emission() int64 {
	whole := int64(r.step) * r.Count // at most the period
	return (int64(r.Period)<<r.shift + whole - 1) / whole
}

// span returns the time of n units in ticks. At the requested rate it is at most MaxSpan; rounding
// up each unit adds at most 1/64, or doubles it if a step is one tick. The error names n by field.
func (r Rate) span(field string, n int64) (int64, error) {
	hi, lo := bits.Mul64(uint64(n), uint64(r.Period))
	mostHi, most := bits.Mul64(uint64(r.Count), uint64(MaxSpan))
	if hi > mostHi || hi == mostHi && lo > most {
		return 0, fmt.Errorf("%s is %d: at %v it takes longer than %v to fill", field, n, r, MaxSpan)
	}
	return n * r.emission(), nil
}

// fillTime returns the time in which the rate admits n units, at most MaxSpan, rounded up to whole
// nanoseconds. It is for descriptions: span rounds each unit.
func (r Rate) fillTime(n int64) time.Duration {
	return time.Duration(ratioUp(n, int64(r.Period), r.Count))
}
