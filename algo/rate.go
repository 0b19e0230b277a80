package algo

import (
	"fmt"
	"math/bits"
	"time"
)

// Rate is Count units in each Period, spread evenly: PerMinute(60) and
// PerSecond(1) are the same rate. Burst is what tells them apart.
//
// Limits accept rates from 1 in 1 year to 1e9 per second. They are kept in
// units of 1/64 ns, rounded so that a limit is never faster than asked: at
// most 1.6 % slow at 1e9/s, 0.02 % at 1e7/s, and below 1 in 1e6 under 1e5/s.
type Rate struct {
	Count  int64
	Period time.Duration
}

// PerSecond is n units a second.
func PerSecond(n int64) Rate { return Rate{n, time.Second} }

// PerMinute is n units a minute.
func PerMinute(n int64) Rate { return Rate{n, time.Minute} }

// PerHour is n units an hour.
func PerHour(n int64) Rate { return Rate{n, time.Hour} }

// PerDay is n units in 24 hours.
func PerDay(n int64) Rate { return Rate{n, 24 * time.Hour} }

// Per is n units in each period.
func Per(n int64, period time.Duration) Rate { return Rate{n, period} }

// Every is one unit in each d.
func Every(d time.Duration) Rate { return Rate{1, d} }

// String writes the rate as Parse reads it: "100/s", "5/15m0s".
func (r Rate) String() string {
	switch r.Period {
	case time.Second:
		return fmt.Sprintf("%d/s", r.Count)
	case time.Minute:
		return fmt.Sprintf("%d/min", r.Count)
	case time.Hour:
		return fmt.Sprintf("%d/h", r.Count)
	case 24 * time.Hour:
		return fmt.Sprintf("%d/day", r.Count)
	}
	return fmt.Sprintf("%d/%s", r.Count, r.Period)
}

// validate names the field and the value that no limit can keep.
func (r Rate) validate() error {
	switch {
	case r.Count <= 0:
		return fmt.Errorf("rate: count is %d, want 1 or more", r.Count)
	case r.Period <= 0:
		return fmt.Errorf("rate: period is %v, want more than 0", r.Period)
	case r.Period > maxSpan:
		return fmt.Errorf("rate: period is %v, want %v at most", r.Period, maxSpan)
	case r.Count > int64(r.Period):
		return fmt.Errorf("rate: %v is faster than 1e9 per second", r)
	}
	return nil
}

// emission is the time that one unit costs, in ticks, rounded up so that the
// limit is never faster than asked.
func (r Rate) emission() int64 {
	period := toTicks(r.Period)
	t := period / r.Count
	if period%r.Count != 0 {
		t++
	}
	return t
}

// span is the time that n units take in ticks. At the rate as it was asked for
// that is at most maxSpan; with each unit rounded up it is at most 1/64 more. The
// error calls n by its field.
func (r Rate) span(field string, n int64) (int64, error) {
	hi, lo := bits.Mul64(uint64(n), uint64(r.Period))
	mostHi, most := bits.Mul64(uint64(r.Count), uint64(maxSpan))
	if hi > mostHi || hi == mostHi && lo > most {
		return 0, fmt.Errorf("%s is %d: at %v it takes longer than %v to fill", field, n, r, maxSpan)
	}
	return n * r.emission(), nil
}

// timeFor is the time in which the rate admits n units, a year at most, rounded
// up to whole nanoseconds. It is for telling callers: span rounds each unit.
func (r Rate) timeFor(n int64) time.Duration {
	hi, lo := bits.Mul64(uint64(n), uint64(r.Period))
	d, rest := bits.Div64(hi, lo, uint64(r.Count))
	if rest > 0 {
		d++
	}
	return time.Duration(d)
}
