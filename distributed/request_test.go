package distributed_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

// F1: whatever Redis does, a decision comes within the timeout, or the
// context's deadline if that is sooner.
func TestF1_DecisionsKeepTheDeadline(t *testing.T) {
	t.Parallel()
	const timeout, grace = 50 * time.Millisecond, 200 * time.Millisecond
	for _, tc := range []struct {
		name  string
		fault redistest.Fault
	}{
		{"refused", redistest.Fault{Refuse: true}},
		{"reset", redistest.Fault{Reset: true}},
		{"black hole", redistest.Fault{BlackHole: true}},
		{"slow", redistest.Fault{Delay: 10 * time.Second}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			proxy := redistest.StartProxy(t, redistest.Start(t))
			proxy.Set(tc.fault)
			store := newStore(t, viaProxy(t, proxy), distributed.WithTimeout(timeout), distributed.WithInstances(1))
			l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(100)))
			var worst time.Duration
			for range 50 {
				began := time.Now()
				lease := acquire(t, l, "alice", 1)
				worst = max(worst, time.Since(began))
				require.Equal(t, algo.SourceFallback, lease.Source)
				require.True(t, lease.Allowed)
			}
			require.Less(t, worst, timeout+grace)
		})
	}
}

func TestF1_TheContextsDeadline(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Start(t))
	proxy.Set(redistest.Fault{BlackHole: true})
	store := newStore(t, viaProxy(t, proxy), distributed.WithTimeout(30*time.Second))
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(100)))
	soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	lease, err := l.Acquire(soon, "alice", 1)
	require.NoError(t, err)
	require.Equal(t, algo.SourceFallback, lease.Source)
}
