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

// F1 for the context: its deadline is kept to the instant, and what comes back
// is a decision.
func TestContextEndsTheWait(t *testing.T) {
	freshEntries(t)
	synctest.Test(t, func(t *testing.T) {
		server := newVirtualServer()
		store, err := New(&virtualClient{server: server, sent: func() {}}, WithTimeout(time.Minute), WithInstances(1),
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

// virtualLimiter is the limiter of an instance of its own.
func virtualLimiter(t *testing.T, server *virtualServer, instance int, opts ...Option) *Limiter {
	t.Helper()
	client := &virtualClient{server: server, instance: instance, sent: func() {}}
	store, err := New(client, append([]Option{WithLogger(slog.New(slog.DiscardHandler))}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	l, err := store.TokenBucket("a", algo.PerHour(1))
	require.NoError(t, err)
	return l
}

// What another instance gives back is noticed when the proof of a denial ends,
// after a second.
func TestProofsLastASecond(t *testing.T) {
	freshEntries(t)
	synctest.Test(t, func(t *testing.T) {
		server := newVirtualServer()
		here := virtualLimiter(t, server, 0, WithInstances(2))
		there := virtualLimiter(t, server, 1, WithInstances(2))
		ask := func(l *Limiter) algo.Lease {
			lease, err := l.Acquire(t.Context(), "k", 1)
			require.NoError(t, err)
			return lease
		}
		spent := ask(there)
		require.True(t, spent.Allowed)
		require.Equal(t, algo.SourceRemote, ask(here).Source)
		spent.Release(algo.Canceled)
		denied := ask(here)
		require.Equal(t, algo.SourceDenyCache, denied.Source)
		time.Sleep(proofLifetime)
		require.True(t, ask(here).Allowed)
	})
}

// A count of the instances that falls is believed when it has been lower for
// a lifetime: after an outage they come back one by one, and those that are
// back first must not share the limit among themselves.
func TestCountThatFallsIsNotBelievedAtOnce(t *testing.T) {
	freshEntries(t)
	synctest.Test(t, func(t *testing.T) {
		r := &virtualLimiter(t, newVirtualServer(), 0).store.registry
		is := func(counted, believed int) {
			t.Helper()
			r.note(instances{counted, 0})
			require.Equal(t, believed, r.known().count)
		}
		is(5, 5)
		for range 9 { // lower for 9 seconds
			is(1, 5)
			time.Sleep(time.Second)
		}
		is(5, 5)
		is(3, 5)
		time.Sleep(lifetime)
		is(3, 3)
		is(4, 4)
	})
}
