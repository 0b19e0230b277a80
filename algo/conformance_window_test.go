package algo_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
)

// twoQuotas is the bound of a fixed window: a window of length w touches at
// most 2 + w/period of its windows.
func twoQuotas(r algo.Rate, w time.Duration) int64 {
	return r.Count * (2 + int64(w/r.Period))
}

// anyWindow is the bound of the strict windows: a quota in any window that is
// shorter than the period, and another for each further period.
func anyWindow(r algo.Rate, w time.Duration) int64 {
	return r.Count * (1 + int64(w/r.Period))
}

func TestFixedWindowConforms(t *testing.T) {
	for name, opts := range map[string][]algo.Option{
		"plain":   nil,
		"offset":  {algo.Offset(123456789)},
		"aligned": {algo.AlignedTo(time.Date(2020, 1, 1, 0, 0, 0, 98765, time.UTC))},
	} {
		t.Run(name, func(t *testing.T) {
			make := func(r algo.Rate, more ...algo.Option) (algo.Limiter, error) {
				return algo.NewFixedWindow(r, append(append(more, algo.MaxKeys(16)), opts...)...)
			}
			algotest.Run(t, make, algotest.Bound{Units: twoQuotas})
		})
	}
}

func TestSlidingWindowConforms(t *testing.T) {
	make := func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
		return algo.NewSlidingWindow(r, append(opts, algo.MaxKeys(16))...)
	}
	lessThanTwo := func(r algo.Rate, w time.Duration) int64 { return twoQuotas(r, w) - 1 }
	algotest.Run(t, make, algotest.Bound{Units: lessThanTwo, Strict: true})
}

func TestSlidingCellsConform(t *testing.T) {
	for _, cells := range []int{1, 7, 10} {
		t.Run(strconv.Itoa(cells), func(t *testing.T) {
			make := func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
				return algo.NewSlidingWindow(r, append(opts, algo.MaxKeys(16), algo.Cells(cells))...)
			}
			algotest.Run(t, make, algotest.Bound{Units: anyWindow, Strict: true})
		})
	}
}

func TestSlidingLogConforms(t *testing.T) {
	make := func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
		return algo.NewSlidingLog(algo.Rate{Count: min(r.Count, 1000), Period: r.Period}, append(opts, algo.MaxKeys(16))...)
	}
	bound := func(r algo.Rate, w time.Duration) int64 {
		return anyWindow(algo.Rate{Count: min(r.Count, 1000), Period: r.Period}, w)
	}
	algotest.Run(t, make, algotest.Bound{Units: bound, Strict: true})
}

// The kit spends 5 at once of rates that it says hold 5 or more.
func TestStrictConforms(t *testing.T) {
	for _, share := range []int64{1, 2} {
		t.Run("burst of one in "+strconv.FormatInt(share, 10), func(t *testing.T) {
			make := func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
				twice := algo.Rate{Count: share * r.Count, Period: r.Period}
				return newStrict(twice, append(opts, algo.MaxKeys(16), algo.Burst(r.Count))...)
			}
			bound := func(r algo.Rate, w time.Duration) int64 { return share * anyWindow(r, w) }
			algotest.Run(t, make, algotest.Bound{Units: bound, Strict: true})
		})
	}
}
