package distributed

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// unreachable is a transport to nowhere.
type unreachable struct{}

func (unreachable) Cluster() bool                                      { return false }
func (unreachable) Slots(context.Context, string) ([]SlotRange, error) { return nil, nil }
func (unreachable) Do(_ context.Context, cmds []*Command) {
	for _, c := range cmds {
		c.Done(nil, ErrNotSent)
	}
}

// What cannot be kept, and what is kept still when the store closes, is counted and named.
func TestCorrectionsBeyondTheBoundAreCounted(t *testing.T) {
	const beyond = 7
	var text bytes.Buffer
	store, err := NewWithTransport(unreachable{}, WithInstances(1), WithLogger(slog.New(slog.NewTextHandler(&text, nil))))
	require.NoError(t, err)
	l, err := store.TokenBucket("users", algo.PerDay(100))
	require.NoError(t, err)
	for range 8 {
		_, err = l.Acquire(t.Context(), "k", 1)
		require.NoError(t, err)
	}
	require.Equal(t, PhaseOpen, store.Stats().Phase)
	for range remote.MaxKept + beyond {
		l.correct(l.redisKey("k"), l.load(), remote.Args{opRefund})
	}
	require.Equal(t, remote.MaxKept, store.Stats().Kept)
	require.Equal(t, int64(beyond), store.Stats().Lost)
	require.Contains(t, text.String(), "limit=users")
	require.NoError(t, store.Close())
	require.Equal(t, int64(remote.MaxKept+beyond), store.Stats().Lost)
	require.Zero(t, store.Stats().Kept)
}
