package algotest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// Make is the constructor under test: a fresh limiter of the given rate, with
// nothing spent.
type Make = func(algo.Rate, ...algo.Option) (algo.Limiter, error)

// Bound is what a limiter promises, and what it leaves out.
type Bound struct {
	// Units is the most that may be admitted in any window of length w, w = 0
	// included. Required.
	Units func(r algo.Rate, w time.Duration) int64
	// Strict: the limiter may deny evenly spaced arrivals at its own rate, as
	// limits do that round a window up.
	Strict bool
	// PayForward: a cost is charged to the callers that come later, so any
	// cost is admitted when nothing is owed.
	PayForward bool
	// RealTime: the limiter's state stands outside the process, so the checks
	// that need a standing clock are left out.
	RealTime bool
}

// BurstPlusRate is the bound of token buckets and their kin with the default
// burst, the rate's count.
func BurstPlusRate(r algo.Rate, w time.Duration) int64 {
	return r.Count + int64(w/r.Period)*r.Count + int64(w%r.Period)*r.Count/int64(r.Period)
}

// check is one requirement. It gets a subject whose limiters are fresh.
type check struct {
	name string
	run  func(t *testing.T, s subject)
	real bool // holds without a standing clock
}

// checks are all requirements, in the order in which a failure helps most.
var checks = []check{
	{"misuse", misuse, true},
	{"never", neverFits, true},
	{"peek changes nothing", peeks, false},
	{"denial changes nothing", denials, false},
	{"remaining is what is admitted", remaining, false},
	{"keys are apart", apart, true},
	{"split is whole", splitIsWhole, false},
	{"conforming arrivals pass", conforming, false},
	{"retry after is exact", retryAfter, false},
	{"window bound", windowBound, false},
	{"window bound with refunds", windowBoundWithRefunds, false},
	{"refund is identity", refundIdentity, false},
	{"512 goroutines", crowd, true},
	{"linearizable", linearizable, false},
	{"wait", waiting, false},
	{"release is idempotent", releaseTwice, false},
	{"nothing allocated", allocations, false},
}

// Run checks the limiters that make makes against bound.
func Run(t *testing.T, make Make, bound Bound) {
	t.Helper()
	require.NotNil(t, bound.Units, "algotest: a bound needs Units")
	for _, c := range checks {
		if bound.RealTime && !c.real {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			s := subject{make, bound}
			if bound.RealTime {
				c.run(t, s)
				return
			}
			synctest.Test(t, func(t *testing.T) { c.run(t, s) })
		})
	}
}

// subject makes limiters and calls them.
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

// acquire is Acquire where no error is due.
func acquire(t require.TestingT, l algo.Limiter, key string, n int64) algo.Lease {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	lease, err := l.Acquire(ctx, key, n)
	require.NoError(t, err)
	return lease
}

// peek is a decision on nothing.
func peek(t require.TestingT, l algo.Limiter, key string) algo.Decision {
	return acquire(t, l, key, 0).Decision
}

// drain spends single units until one is denied or would be delayed, and
// returns how many there were.
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
