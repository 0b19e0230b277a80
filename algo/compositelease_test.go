package algo_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func TestAcquireAllReleasesInReverse(t *testing.T) {
	var log []string
	reqs := make([]algo.Request, 0, 5)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		reqs = append(reqs, algo.Request{Limiter: recorder{name, &log}, N: 1})
	}
	lease := acquireAll(t, reqs...)
	lease.Settle(4)
	lease.Release(algo.Failed)
	lease.Release(algo.Canceled)
	lease.Settle(9)
	require.Equal(t, []string{
		"a settled", "b settled", "c settled", "d settled", "e settled",
		"e failed", "d failed", "c failed", "b failed", "a failed",
	}, log)

	log = nil
	denied := acquireAll(t, reqs[0], reqs[1], algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota}), N: 1}, reqs[2])
	denied.Release(algo.Failed)
	require.Equal(t, []string{"b canceled", "a canceled"}, log[:2], "given back at once")
	require.NotContains(t, log, "a failed")
}

func TestAcquireAllSettlesAll(t *testing.T) {
	a, b := bucket(algo.PerHour(10)), bucket(algo.PerHour(10))
	lease := acquireAll(t, algo.Request{Limiter: a, N: 5}, algo.Request{Limiter: b, N: 5})
	lease.Settle(3)
	require.Equal(t, int64(7), peek(t, a, "").Remaining)
	require.Equal(t, int64(7), peek(t, b, "").Remaining)
	lease.Settle(6)
	require.Equal(t, int64(4), peek(t, a, "").Remaining)
	require.Equal(t, int64(4), peek(t, b, "").Remaining)
	lease.Release(algo.Succeeded)
	lease.Settle(0)
	require.Equal(t, int64(4), peek(t, a, "").Remaining)
}

// A limiter that panics leaves nothing charged behind, neither when it is asked
// nor when it is released.
func TestW4_AcquireAllPanics(t *testing.T) {
	a, b := bucket(algo.PerHour(3)), bucket(algo.PerHour(3))
	panics := limiterFunc(func(context.Context, string, int64) (algo.Lease, error) { panic("limiter") })
	for range 100 {
		require.PanicsWithValue(t, "limiter", func() {
			_, _ = algo.AcquireAll(bg, algo.Request{Limiter: a, N: 1}, algo.Request{Limiter: b, N: 1}, algo.Request{Limiter: panics, N: 1})
		})
	}
	require.Equal(t, int64(3), drain(t, a, ""))
	require.Equal(t, int64(3), drain(t, b, ""))

	c := bucket(algo.PerHour(3))
	lease := acquireAll(t, algo.Request{Limiter: c, N: 3}, algo.Request{Limiter: badReleaser{}, N: 1}, algo.Request{Limiter: badReleaser{}, N: 1})
	require.PanicsWithValue(t, "release", func() { lease.Release(algo.Canceled) })
	require.Equal(t, int64(3), drain(t, c, ""))
}

type badReleaser struct{}

func (b badReleaser) Acquire(context.Context, string, int64) (algo.Lease, error) {
	return algo.NewLease(algo.Decision{Allowed: true}, b, algo.Handle{}), nil
}

func (badReleaser) Release(algo.Handle, algo.Outcome) { panic("release") }

func (badReleaser) Settle(algo.Handle, int64) {}

// A caller that gives up and a panicking handler, with the lease deferred.
func TestAcquireAllReleasedByPanickingWork(t *testing.T) {
	a, b := bucket(algo.PerHour(3)), bucket(algo.PerHour(3))
	for range 50 {
		require.Panics(t, func() {
			lease := acquireAll(t, algo.Request{Limiter: a, N: 2}, algo.Request{Limiter: b, N: 2})
			defer lease.Release(algo.Canceled)
			panic("handler")
		})
	}
	require.Equal(t, int64(3), drain(t, a, ""))
	require.Equal(t, int64(3), drain(t, b, ""))
}

func TestParts(t *testing.T) {
	a, b := bucket(algo.PerHour(5)), bucket(algo.PerHour(7))
	lease := acquireAll(t, algo.Request{Limiter: a, N: 2}, algo.Request{Limiter: b, N: 3})
	want := lease.Parts()
	require.Equal(t, []int64{3, 4}, []int64{want[0].Remaining, want[1].Remaining})
	want[0].Remaining = 77
	require.NotEqual(t, want, lease.Parts(), "the caller's copy")
	lease.Release(algo.Succeeded)
	require.Nil(t, lease.Parts())

	denied := acquireAll(t, algo.Request{Limiter: a, N: 2}, algo.Request{Limiter: b, N: 6})
	require.Equal(t, []bool{true, false}, verdicts(denied.Parts()))
	denied.Settle(1)
	require.Len(t, denied.Parts(), 2)
	denied.Release(algo.Canceled)
	require.Nil(t, denied.Parts())
	require.Equal(t, int64(3), peek(t, a, "").Remaining)

	single := must(t, a, "", 1)
	require.Nil(t, single.Parts())
	require.Nil(t, new(algo.Lease).Parts())
}

func ExampleLease_Parts() {
	second := algo.Must(algo.NewTokenBucket(algo.PerSecond(10)))
	day := algo.Must(algo.NewTokenBucket(algo.PerDay(12)))
	both := algo.All(second, day)
	lease, _ := both.Acquire(context.Background(), "alice", 10)
	lease.Release(algo.Succeeded)

	lease, _ = both.Acquire(context.Background(), "alice", 9)
	fmt.Println(lease.Allowed, lease.Reason)
	for i, part := range lease.Parts() {
		fmt.Println(i, part.Allowed, part.RetryAfter.Round(100*time.Millisecond))
	}
	// Output:
	// false quota
	// 0 false 900ms
	// 1 false 14h0m0s
}
