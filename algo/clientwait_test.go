package algo_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// waitLog is a limiter that follows waits for clients.
type waitLog struct {
	events []bool
	waited time.Duration
}

func (w *waitLog) Acquire(_ context.Context, _ string, n int64) (algo.Lease, error) {
	return algo.NewLease(algo.Decision{Allowed: true}, w, algo.Handle{N: n}), nil
}
func (w *waitLog) Release(algo.Handle, algo.Outcome) {}
func (w *waitLog) ReleaseAfterWait(_ algo.Handle, _ algo.Outcome, waited time.Duration) {
	w.waited = waited
}
func (w *waitLog) Settle(algo.Handle, int64)                {}
func (w *waitLog) AwaitClient(_ *algo.Handle, waiting bool) { w.events = append(w.events, waiting) }

// A wait reaches every limiter of a composition that follows waits, and does
// nothing after the release and on other leases.
func TestAwaitClient(t *testing.T) {
	var first, second waitLog
	bucket := algo.Must(algo.NewTokenBucket(algo.PerSecond(10)))
	for name, l := range map[string]algo.Limiter{
		"alone": &first, "all": algo.All(bucket, &first, &second), "shadow": algo.Shadow(&first),
	} {
		first, second = waitLog{}, waitLog{}
		lease, err := l.Acquire(t.Context(), "k", 1)
		require.NoError(t, err)
		lease.AwaitClient(true)
		lease.AwaitClient(false)
		lease.Release(algo.Succeeded)
		lease.AwaitClient(true)
		require.Equal(t, []bool{true, false}, first.events, name)
		if name == "all" {
			require.Equal(t, []bool{true, false}, second.events)
		}
	}
	var none algo.Lease
	none.AwaitClient(true)
}

// A release ends a wait that has begun, and calls that repeat each other count once.
func TestReleaseEndsAWait(t *testing.T) {
	var w waitLog
	for name, l := range map[string]algo.Limiter{"alone": &w, "all": algo.All(bucket(algo.PerSecond(10)), &w)} {
		w = waitLog{}
		lease := must(t, l, "k", 1)
		lease.AwaitClient(false)
		lease.AwaitClient(true)
		lease.AwaitClient(true)
		lease.Release(algo.Succeeded)
		lease.AwaitClient(false)
		require.Equal(t, []bool{true, false}, w.events, name)
	}
}

// A part that outlives the lease does not reach the next lease, which uses the same memory.
func TestAwaitClientOfAReleasedPart(t *testing.T) {
	var w waitLog
	both := algo.All(bucket(algo.PerSecond(1000)), &w)
	for range 100 { // a pool need not return what was put into it
		old := must(t, both, "k", 1)
		part := old.Part(1)
		old.Release(algo.Succeeded)
		next := must(t, both, "k", 1)
		part.AwaitClient(true)
		next.Release(algo.Succeeded)
	}
	require.Empty(t, w.events)
}

// A lease that waits for its client is settled as before.
func TestSettleWhileTheClientIsAwaited(t *testing.T) {
	var w settledWaits
	lease := algo.NewLease(algo.Decision{Allowed: true}, algo.Releaser(&w), algo.Handle{N: 5})
	lease.AwaitClient(true)
	lease.Settle(3)
	lease.Settle(7)
	require.Equal(t, []int64{3, 7}, w.amounts)
}

// settledWaits records its settlements.
type settledWaits struct {
	waitLog
	amounts []int64
}

func (s *settledWaits) Settle(_ algo.Handle, actual int64) { s.amounts = append(s.amounts, actual) }

// Every lease has the method; a rate limit ignores the call.
func ExampleLease_AwaitClient() {
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(10)))
	lease, _ := l.Acquire(context.Background(), "ann", 1)
	defer lease.Release(algo.Succeeded)
	lease.AwaitClient(true) // the upload arrives slowly
	lease.AwaitClient(false)
	fmt.Println(lease.Allowed)
	// Output: true
}

// TestReleaseAfterWait: a release states the sum of the waits, the last one included.
func TestReleaseAfterWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := new(waitLog)
		lease, err := w.Acquire(t.Context(), "", 1)
		require.NoError(t, err)
		lease.AwaitClient(true)
		time.Sleep(3 * time.Second)
		lease.AwaitClient(false)
		time.Sleep(time.Minute)
		lease.AwaitClient(true)
		time.Sleep(2 * time.Second)
		lease.Release(algo.Succeeded | algo.Untimed)
		require.Equal(t, 5*time.Second, w.waited)
	})
}
