package distributed

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// A charge whose caller has gone is given back also when its reply comes during Close.
func TestLateRepliesDuringClose(t *testing.T) {
	freshRequests(t)
	synctest.Test(t, func(t *testing.T) {
		server := newVirtualServer(perMicros(1, time.Hour), 1)
		l := virtualLimiter(t, server, 0, WithInstances(1), WithTimeout(time.Second))
		require.Zero(t, algo.Must(l.Acquire(t.Context(), "warm", 0)).RetryAfter)
		server.set([]int{0}, sluggish)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.Equal(t, algo.SourceFallback, algo.Must(l.Acquire(ctx, "k", 1)).Source)
		require.NoError(t, l.store.Close())
		require.True(t, algo.Must(virtualLimiter(t, server, 1, WithInstances(1)).Acquire(t.Context(), "k", 1)).Allowed)
	})
}
