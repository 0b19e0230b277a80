package algo_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
)

// TestEveryCauseHasAName: what a limiter states is compared with a constant, and not as text.
func TestEveryCauseHasAName(t *testing.T) {
	all := []algo.Cause{
		algo.CauseNone, algo.CauseLimit, algo.CauseKeys, algo.CauseDeadline, algo.CauseQueue, algo.CauseProcessor,
		algo.CauseLatency, algo.CauseHang, algo.CausePriority, algo.CauseShare, algo.CauseStore,
	}
	require.Len(t, all, int(cause.Count))
	texts := map[string]bool{}
	for i, c := range all {
		require.EqualValues(t, i, c)
		texts[c.String()] = true
	}
	require.Len(t, texts, len(all))
}

// oneAtATime is a limiter of another module.
type oneAtATime struct{ busy bool }

func (l *oneAtATime) Acquire(context.Context, string, int64) (algo.Lease, error) {
	if l.busy {
		return algo.Lease{Decision: algo.Decision{Reason: algo.Overload, Cause: algo.CauseLimit}}, nil
	}
	l.busy = true
	return algo.NewLease(algo.Decision{Allowed: true}, l, algo.Handle{}), nil
}

func (l *oneAtATime) Release(algo.Handle, algo.Outcome) { l.busy = false }
func (l *oneAtATime) Settle(algo.Handle, int64)         {}

// A limiter states the cause of a denial, and its caller asks for it.
func ExampleCause() {
	l := new(oneAtATime)
	for range 2 {
		lease, _ := l.Acquire(context.Background(), "", 1)
		fmt.Println(lease.Allowed, lease.Cause == algo.CauseLimit)
	}
	// Output:
	// true false
	// false true
}
