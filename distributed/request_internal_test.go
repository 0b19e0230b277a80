package distributed

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// TestF1_ContextEndsTheWait: the context's deadline is kept to the instant, and
// the result is a decision.
func TestF1_ContextEndsTheWait(t *testing.T) {
	freshRequests(t)
	synctest.Test(t, func(t *testing.T) {
		server := newVirtualServer(perMicros(virtualRate, time.Minute), virtualBurst)
		store, err := NewWithTransport(&virtualTransport{server: server, sent: func() {}}, WithTimeout(time.Minute), WithInstances(1),
			WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		l, err := store.TokenBucket("a", algo.PerMinute(virtualRate))
		require.NoError(t, err)
		server.set([]int{0}, silent)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		began := time.Now()
		lease, err := l.Acquire(ctx, "k", 1)
		require.NoError(t, err)
		require.Equal(t, algo.SourceFallback, lease.Source)
		require.Equal(t, 20*time.Millisecond, time.Since(began))
		require.NoError(t, store.Close())
	})
}
