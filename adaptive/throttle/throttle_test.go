package throttle_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive/throttle"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/fakes"
)

var background = context.Background()

var acquire, releaseAll = fakes.Acquire, fakes.ReleaseAll

func newThrottle(t testing.TB, opts ...throttle.Option) *throttle.Throttle {
	t.Helper()
	th, err := throttle.New(opts...)
	require.NoError(t, err)
	return th
}

// drive makes rate calls per second for d, to a backend that accepts capacity calls
// per second, and counts the calls sent and accepted.
func drive(t *testing.T, th *throttle.Throttle, rate, capacity int, d time.Duration) (sent, accepted int) {
	t.Helper()
	for range d / time.Second {
		left := capacity
		for range rate {
			time.Sleep(time.Second / time.Duration(rate))
			lease := acquire(t, th, "", 1)
			if !lease.Allowed {
				if lease.Reason != algo.Overload || lease.RetryAfter <= 0 {
					t.Fatalf("%+v", lease.Decision)
				}
				continue
			}
			sent++
			if left > 0 {
				left--
				accepted++
				lease.Release(algo.Succeeded)
			} else {
				lease.Release(algo.Failed)
			}
		}
	}
	return sent, accepted
}

// TestThrottleAtTenTimesTheLoad: the backend receives about twice its capacity, and
// all of its capacity is used.
func TestThrottleAtTenTimesTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThrottle(t)
		sent, accepted := drive(t, th, 100, 100, 150*time.Second)
		require.Equal(t, sent, accepted)
		require.Equal(t, 15_000, sent, "a healthy backend is not throttled")
		drive(t, th, 1000, 100, 240*time.Second)
		sent, accepted = drive(t, th, 1000, 100, 60*time.Second)
		require.InDelta(t, 6000, accepted, 200)
		require.InDelta(t, 12_000, sent, 1200)
		require.InDelta(t, .8, th.Probability(), .02)
		drive(t, th, 100, 100, 240*time.Second)
		require.Zero(t, th.Probability(), "and it recovers")
	})
}

// TestThrottleAfterADay: calls count for two minutes, also after a pause of any
// length.
func TestThrottleAfterADay(t *testing.T) {
	for _, pause := range []time.Duration{2 * time.Minute, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			th := newThrottle(t)
			drive(t, th, 100, 0, 60*time.Second)
			require.Greater(t, th.Probability(), .99)
			time.Sleep(pause)
			require.Zero(t, th.Probability())
			require.True(t, acquire(t, th, "", 1).Allowed)
		})
	}
}

// TestThrottleProbes: a backend that rejects everything still receives a call every
// five seconds, which shows its recovery.
func TestThrottleProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThrottle(t)
		drive(t, th, 100, 0, 5*time.Minute)
		sent, _ := drive(t, th, 100, 0, 10*time.Minute)
		require.Positive(t, sent)
		require.InDelta(t, 120, sent, 20, "every five seconds")
		drive(t, th, 100, 100, 12*time.Minute)
		require.Zero(t, th.Probability())
	})
}

func TestThrottleOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThrottle(t)
		p := func(outcomes ...algo.Outcome) float64 {
			time.Sleep(time.Hour)
			for _, o := range outcomes {
				lease := acquire(t, th, "", 1)
				for !lease.Allowed {
					time.Sleep(time.Hour)
					lease = acquire(t, th, "", 1)
				}
				lease.Release(o)
				lease.Release(algo.Succeeded)
			}
			return th.Probability()
		}
		require.Equal(t, 0.5, p(algo.Failed))
		require.Zero(t, p(algo.Succeeded))
		require.Zero(t, p(algo.Canceled, algo.Succeeded|algo.Untimed))
		require.Zero(t, p(algo.Succeeded, algo.Failed))

		time.Sleep(time.Hour)
		lease := acquire(t, th, "", 3)
		lease.Settle(0)
		lease.Settle(9)
		require.Zero(t, th.Probability(), "it has not ended")
		lease.Release(algo.Failed)
		require.Equal(t, .9, th.Probability())
	})
}

// admit begins n calls.
func admit(t testing.TB, l algo.Limiter, n int) (leases []algo.Lease) {
	t.Helper()
	for range n {
		lease := acquire(t, l, "", 1)
		require.True(t, lease.Allowed)
		leases = append(leases, lease)
	}
	return leases
}

// TestThrottleCallsUnderWay are no evidence: neither a burst of calls to a healthy backend
// from rest, nor streams that end long after they began and do not count.
func TestThrottleCallsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThrottle(t)
		for range 130 {
			calls := admit(t, th, 50)
			time.Sleep(50 * time.Millisecond)
			releaseAll(calls, algo.Succeeded)
			time.Sleep(950 * time.Millisecond)
		}
		streams := admit(t, th, 100)
		time.Sleep(100 * time.Second)
		releaseAll(streams, algo.Succeeded|algo.Untimed)
		for range 130 {
			require.Zero(t, th.Probability())
			time.Sleep(time.Second)
		}
	})
}

func TestThrottleCosts(t *testing.T) {
	th := newThrottle(t)
	_, err := th.Acquire(background, "", -1)
	require.ErrorIs(t, err, algo.ErrCost)
	for range 100 {
		peek := acquire(t, th, "", 0)
		require.True(t, peek.Allowed)
		peek.Release(algo.Failed)
	}
	require.Zero(t, th.Probability(), "a peek is no call")
	lease := acquire(t, th, "", math.MaxInt64)
	lease.Release(algo.Succeeded)
	require.Zero(t, th.Probability())
}

func TestThrottleErrors(t *testing.T) {
	for _, k := range []float64{0, .99, -1, 1001, math.NaN(), math.Inf(1)} {
		_, err := throttle.New(throttle.WithK(k))
		require.ErrorContains(t, err, "WithK: is")
	}
}

func TestThrottleAllocations(t *testing.T) {
	var th algo.Limiter = newThrottle(t)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		lease, _ := th.Acquire(background, "k", 1)
		lease.Release(algo.Failed)
	}))
}

func BenchmarkThrottle(b *testing.B) {
	b.ReportAllocs()
	var th algo.Limiter = newThrottle(b)
	for b.Loop() {
		lease, _ := th.Acquire(background, "", 1)
		lease.Release(algo.Succeeded)
	}
}

// A backend that rejects most calls receives few of the next ones.
func ExampleNew() {
	backend := algo.Must(throttle.New(throttle.WithK(2)))
	call := func() error {
		lease, err := backend.Acquire(background, "", 1)
		if err != nil || !lease.Allowed {
			return fmt.Errorf("not called: %v", lease.Reason)
		}
		defer lease.Release(algo.Succeeded) // algo.Failed if the backend rejects the call
		return nil
	}
	fmt.Println(call(), backend.Probability())
	// Output: <nil> 0
}
