package algotest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// Make is the constructor under test. It returns a new limiter of the given rate without debt.
type Make = func(algo.Rate, ...algo.Option) (algo.Limiter, error)

// Bound describes the promises of a limiter, and the checks that do not apply.
type Bound struct {
	// Units returns the most units that may be admitted in any window of length
	// w, including w = 0. Required.
	Units func(r algo.Rate, w time.Duration) int64
	// Strict limiters may deny evenly spaced arrivals at their own rate, because
	// they round windows up.
	Strict bool
	// PayForward limiters delay later requests for the cost of earlier ones, so
	// that they admit any cost while there is no debt.
	PayForward bool
	// RealTime limiters have their state outside the process. The checks that
	// need a frozen clock are skipped.
	RealTime bool
}

// BurstPlusRate is the bound of token buckets with the default burst, the rate's
// count.
func BurstPlusRate(r algo.Rate, w time.Duration) int64 {
	return r.Count + int64(w/r.Period)*r.Count + int64(w%r.Period)*r.Count/int64(r.Period)
}

// check is one requirement on the limiters of a subject.
type check struct {
	name string
	run  func(t *testing.T, s subject)
	real bool // needs no frozen clock
}

// checks lists all requirements, the most informative failures first.
var checks = []check{
	{"answers", answers, true},
	{"misuse", misuse, true},
	{"never", neverFits, true},
	{"description", description, true},
	{"remaining is exact", remaining, false},
	{"n units cost n times one", splitCost, false},
	{"conforming arrivals pass", conforming, false},
	{"retry after is exact", retryAfter, false},
	{"debt", debt, false},
	{"window bound", windowBound, false},
	{"window bound with refunds", windowBoundWithRefunds, false},
	{"refund is identity", refundIdentity, false},
	{"512 goroutines", manyGoroutines, true},
	{"linearizable", linearizable, false},
	{"wait", waiting, false},
	{"nothing allocated", allocations, false},
}

// Run checks the limiters that make returns against bound, until a check fails: later checks build on
// earlier ones.
func Run(t *testing.T, make Make, bound Bound) {
	t.Helper()
	require.NotNil(t, bound.Units, "algotest: a bound needs Units")
	for _, c := range checks {
		if bound.RealTime && !c.real {
			continue
		}
		ok := t.Run(c.name, func(t *testing.T) {
			s := subject{make, bound}
			if bound.RealTime {
				c.run(t, s)
				return
			}
			synctest.Test(t, func(t *testing.T) { c.run(t, s) })
		})
		if !ok {
			return
		}
	}
}

// subject makes limiters with a bound.
type subject struct {
	make  Make
	bound Bound
}

func (s subject) new(t *testing.T, r algo.Rate) algo.Limiter {
	t.Helper()
	l, err := s.make(r)
	require.NoError(t, err)
	return l
}

// acquire calls Acquire and fails the test on an error.
func acquire(t require.TestingT, l algo.Limiter, key string, n int64) algo.Lease {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	lease, err := l.Acquire(ctx, key, n)
	require.NoError(t, err, "a denial is no error: errors report misuse and failures of a backend")
	return lease
}

// peek returns the decision on 0 units.
func peek(t require.TestingT, l algo.Limiter, key string) algo.Decision {
	return acquire(t, l, key, 0).Decision
}

// drain spends single units until one is denied or delayed, and returns their
// number.
func drain(t require.TestingT, l algo.Limiter, key string) (n int64) {
	for {
		lease := acquire(t, l, key, 1)
		if !lease.Allowed {
			return n
		}
		if lease.Delay > 0 {
			lease.Release(algo.Canceled)
			return n
		}
		n++
	}
}
