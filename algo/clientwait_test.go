package algo_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// waitLog is a limiter that follows waits for clients.
type waitLog struct{ events []bool }

func (w *waitLog) Acquire(_ context.Context, _ string, n int64) (algo.Lease, error) {
	return algo.NewLease(algo.Decision{Allowed: true}, w, algo.Handle{N: n}), nil
}
func (w *waitLog) Release(algo.Handle, algo.Outcome)        {}
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
