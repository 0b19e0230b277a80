package decide

import (
	"math/rand/v2"
	"time"
)

const (
	tick = 64 // ticks of a nanosecond
	year = int64(MaxSpan) * tick
)

func ticks(d time.Duration) int64 { return Nanoseconds.Ticks(d) }

// per is a local rate.
func per(n int64, period time.Duration) Rate { return Rate{n, period, Nanoseconds} }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// anyRate covers rates from 1 a day to one a step, or too fast, in either
// resolution.
func anyRate(rnd *rand.Rand) Rate {
	r := per(1+rnd.Int64N(1<<rnd.IntN(20)), time.Duration(1+rnd.Int64N(1<<(1+rnd.IntN(46)))))
	if rnd.IntN(4) == 0 {
		r.Resolution = Microseconds
	}
	return r
}

// jumpingClock returns readings that go on, stand still, and go back.
func jumpingClock(rnd *rand.Rand, unit int64) func() int64 {
	now := 1 << 40 * rnd.Int64N(1000)
	return func() int64 {
		switch rnd.IntN(6) {
		case 0:
			now += rnd.Int64N(unit + 1)
		case 1:
			now += rnd.Int64N(8*unit + 1)
		case 2:
			now = max(now-rnd.Int64N(8*unit+1), 0)
		case 3:
			return max(now-rnd.Int64N(4*unit+1), 0) // one late reading
		}
		return now
	}
}

// admission is a charge of n units at an instant.
type admission struct{ at, n int64 }

// spans are the spans of a verdict.
func spans(v Verdict) []int64 { return []int64{v.Delay, v.RetryAfter, v.NextAfter, v.ResetAfter} }
