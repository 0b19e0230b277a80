package distributed_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// G1: a Ping without a deadline that meets Close returns.
func TestG1_PingWhileClosing(t *testing.T) {
	client := nowhere(t)
	for range max(cases.Count(2000, 20_000), 200) {
		store, err := distributed.New(client, distributed.WithInstances(1))
		require.NoError(t, err)
		var group sync.WaitGroup
		returned := make(chan struct{})
		group.Go(func() { _ = store.Close() })
		for range 4 {
			group.Go(func() { _ = store.Ping(context.Background()) })
		}
		go func() { group.Wait(); close(returned) }()
		select {
		case <-returned:
		case <-time.After(20 * time.Second):
			t.Fatal("Ping does not return")
		}
	}
}

// Close returns the blocks that are in transit when it is called, of a limit and of a
// store: the charges equal the admissions.
func TestBlocksOnTheirWayAtClose(t *testing.T) {
	for name, end := range map[string]func(*distributed.Store, *distributed.Limiter) error{
		"limit": func(_ *distributed.Store, l *distributed.Limiter) error { return l.Close() },
		"store": func(s *distributed.Store, _ *distributed.Limiter) error { return s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			const quota = 1_000_000
			server := redistest.Start(t)
			store := newStore(t, server.Client(), distributed.WithBlocks(1000), distributed.WithInstances(1))
			rate := algo.Per(quota, 365*24*time.Hour)
			l := must[*distributed.Limiter](t)(store.TokenBucket("a", rate))
			var admitted int64
			var last error
			var group sync.WaitGroup
			group.Go(func() {
				for {
					lease, err := l.Acquire(ctx, "k", 1)
					if last = err; err != nil {
						return
					}
					if lease.Source == algo.SourceRemote || lease.Source == algo.SourceBlock {
						admitted++
					}
				}
			})
			time.Sleep(50 * time.Millisecond)
			server.Pause()
			time.Sleep(50 * time.Millisecond) // a block is asked for
			group.Go(func() { require.NoError(t, end(store, l)) })
			time.Sleep(50 * time.Millisecond)
			server.Resume()
			group.Wait()
			require.ErrorIs(t, last, distributed.ErrClosed)
			other := must[*distributed.Limiter](t)(newStore(t, server.Client(), distributed.WithInstances(1)).TokenBucket("a", rate))
			require.Eventually(t, func() bool { return quota-remote(t, other, "k", 0).Remaining <= admitted },
				5*time.Second, 10*time.Millisecond, "admitted %d, charged %d", admitted, quota-remote(t, other, "k", 0).Remaining)
			require.InDelta(t, admitted, quota-remote(t, other, "k", 0).Remaining, 2)
		})
	}
}

// A lease of a closed limit holds its units for as long as its work lasts, also if it takes
// them only then.
func TestInFlightRenewsAfterClose(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store := newStore(t, server.Client())
	l := must[*distributed.Limiter](t)(store.InFlight("work", 3, time.Second))
	other := must[*distributed.Limiter](t)(newStore(t, server.Client()).InFlight("work", 3, time.Second))
	late, first := remote(t, l, "k", 0), remote(t, l, "k", 1)
	first.Release(algo.Succeeded)
	require.NoError(t, l.Close())
	time.Sleep(500 * time.Millisecond) // nothing was left to renew
	late.Settle(2)
	require.Eventually(t, func() bool { return remote(t, other, "k", 0).Remaining == 1 }, 5*time.Second, time.Millisecond)
	for began := time.Now(); time.Since(began) < 2500*time.Millisecond; time.Sleep(20 * time.Millisecond) {
		require.Equal(t, int64(1), remote(t, other, "k", 0).Remaining)
	}
	late.Release(algo.Succeeded)
	require.Eventually(t, func() bool { return remote(t, other, "k", 0).Remaining == 3 }, 5*time.Second, time.Millisecond)
}

// Leases from a block of a closed limit give their units back to Redis.
func TestBlockLeasesAfterClose(t *testing.T) {
	const quota = 100_000
	server := redistest.Start(t)
	store := newStore(t, server.Client(), distributed.WithBlocks(1000), distributed.WithInstances(1))
	rate := algo.Per(quota, 365*24*time.Hour)
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", rate))
	var held []algo.Lease
	for len(held) < 500 {
		if lease := acquire(t, l, "k", 1); lease.Source == algo.SourceBlock {
			held = append(held, lease)
		} else {
			lease.Release(algo.Canceled)
		}
	}
	require.NoError(t, l.Close())
	for i := range held {
		held[i].Release(algo.Canceled)
	}
	again := must[*distributed.Limiter](t)(store.TokenBucket("a", rate))
	require.Eventually(t, func() bool { return remote(t, again, "k", 0).Remaining == quota }, 5*time.Second, 10*time.Millisecond)
}
