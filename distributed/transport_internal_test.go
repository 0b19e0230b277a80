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

// mute is a transport on which no reply comes.
type mute struct{ took chan time.Duration }

func (s mute) Do(ctx context.Context, cmds []*Command) {
	began := time.Now()
	<-ctx.Done()
	for _, c := range cmds {
		c.Done(nil, ctx.Err())
	}
	select {
	case s.took <- time.Since(began):
	default:
	}
}

func (mute) Cluster() bool { return false }

func (mute) Slots(context.Context, string) ([]SlotRange, error) { return nil, nil }

// TestTransportContext: a caller waits for the timeout, the transport for ten of them, so
// that a late charge can be given back.
func TestTransportContext(t *testing.T) {
	freshRequests(t)
	synctest.Test(t, func(t *testing.T) {
		tr := mute{make(chan time.Duration, 1)}
		store, err := NewWithTransport(tr, WithTimeout(200*time.Millisecond), WithInstances(1), WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		l, err := store.TokenBucket("a", algo.PerHour(1))
		require.NoError(t, err)
		began := time.Now()
		lease, err := l.Acquire(t.Context(), "k", 1)
		require.NoError(t, err)
		require.Equal(t, algo.SourceFallback, lease.Source)
		require.Equal(t, 200*time.Millisecond, time.Since(began))
		require.Equal(t, 2*time.Second, <-tr.took)
		require.NoError(t, store.Close())
	})
}

func TestNilTransport(t *testing.T) {
	_, err := NewWithTransport(nil)
	require.ErrorContains(t, err, "nil")
}
