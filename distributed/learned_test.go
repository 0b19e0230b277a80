package distributed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// Two instances learn one rate, and a wait of one is a wait of both. Without Redis each has half
// of the rate, and keeps the wait.
func TestLearnedByAFleet(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	var store *distributed.Store
	join := func(rate algo.Rate) *distributed.Learned {
		store = newStore(t, viaProxy(t, proxy), distributed.WithInstances(2))
		return must[*distributed.Learned](t)(store.Learned("partner", rate))
	}
	a, b := join(algo.PerSecond(1)), join(algo.PerSecond(1))
	acquire := func(l *distributed.Learned) algo.Lease { return must[algo.Lease](t)(l.Acquire(ctx, "k", 1)) }

	lease := acquire(a)
	require.True(t, lease.Allowed)
	require.Equal(t, algo.SourceRemote, lease.Source)
	b.Answered("k", learn.Answer{Sent: time.Now(), Units: 1})
	second := acquire(b)
	third := acquire(a)
	require.False(t, second.Allowed && third.Allowed, "one rate for both")
	require.Positive(t, max(second.RetryAfter, third.RetryAfter))

	before := max(a.Stats("k").Rate, b.Stats("k").Rate)
	a.Answered("k", learn.Answer{Sent: time.Now(), Denied: true, Wait: 30 * time.Second})
	for _, l := range []*distributed.Learned{a, b} {
		denied := acquire(l)
		require.Equal(t, algo.Quota, denied.Reason)
		require.Greater(t, denied.RetryAfter, 29*time.Second)
		require.Less(t, l.Stats("k").Rate, before)
	}
	canceled := must[algo.Lease](t)(a.Acquire(ctx, "other", 1))
	canceled.Release(algo.Canceled)
	require.Eventually(t, func() bool { return must[algo.Lease](t)(b.Acquire(ctx, "other", 0)).RetryAfter == 0 }, 5*time.Second, time.Millisecond)

	b = join(algo.PerSecond(50))
	acquire(b)
	proxy.Set(redistest.Fault{Refuse: true, Reset: true})
	require.Eventually(t, func() bool { acquire(b); return store.Stats().Phase == distributed.PhaseOpen }, 5*time.Second, time.Millisecond)
	denied := acquire(b)
	require.Equal(t, algo.SourceFallback, denied.Source)
	require.Greater(t, denied.RetryAfter, 20*time.Second, "the wait is kept")
	admitted, start := 0, time.Now()
	for time.Since(start) < 500*time.Millisecond {
		if must[algo.Lease](t)(b.Acquire(ctx, "fresh", 1)).Allowed {
			admitted++
		}
		time.Sleep(time.Millisecond)
	}
	require.LessOrEqual(t, float64(admitted), 25*time.Since(start).Seconds()+2, "half of 50 a second")
	require.Greater(t, admitted, 1)
}

// A wait that Redis could not be told is kept by the instance that was told it.
func TestLearnedWaitsOutliveAnOutage(t *testing.T) {
	proxy := redistest.StartProxy(t, redistest.Start(t))
	store := newStore(t, viaProxy(t, proxy), distributed.WithInstances(1))
	l := must[*distributed.Learned](t)(store.Learned("partner", algo.PerSecond(50)))
	proxy.Set(redistest.Fault{Refuse: true, Reset: true})
	l.Answered("k", learn.Answer{Sent: time.Now(), Denied: true, Wait: time.Minute})
	proxy.Set(redistest.Fault{})
	require.Eventually(t, func() bool {
		return must[algo.Lease](t)(l.Acquire(ctx, "other", 0)).Source == algo.SourceRemote
	}, 10*time.Second, 10*time.Millisecond)
	denied := must[algo.Lease](t)(l.Acquire(ctx, "k", 1))
	require.Equal(t, algo.Quota, denied.Reason)
	require.Greater(t, denied.RetryAfter, 30*time.Second)
}

// A wait that Redis was told holds without Redis too, for a caller that has not asked since.
func TestLearnedWaitsOutliveRedis(t *testing.T) {
	proxy := redistest.StartProxy(t, redistest.Start(t))
	store := newStore(t, viaProxy(t, proxy), distributed.WithInstances(1))
	l := must[*distributed.Learned](t)(store.Learned("partner", algo.PerSecond(50)))
	require.Equal(t, algo.SourceRemote, must[algo.Lease](t)(l.Acquire(ctx, "k", 1)).Source)
	told := learn.Answer{Sent: time.Now(), Units: 1, Denied: true, Wait: time.Minute}
	l.Answered("k", told)
	known := l.Stats("k")
	require.Greater(t, known.Wait, 30*time.Second)
	require.Equal(t, learn.Stats{Rate: known.Rate, Wait: known.Wait, Waits: 1, Denied: 1, Taught: told}, known)

	proxy.Set(redistest.Fault{Refuse: true, Reset: true})
	denied := must[algo.Lease](t)(l.Acquire(ctx, "k", 1))
	require.Equal(t, algo.SourceFallback, denied.Source)
	require.Greater(t, denied.RetryAfter, 30*time.Second)
	require.EqualValues(t, 1, l.Stats().Denied)
	require.Greater(t, l.Stats().Wait, 30*time.Second)
	require.Equal(t, told, l.Stats().Taught)
}

func TestLearnedArguments(t *testing.T) {
	store := newStore(t, viaProxy(t, redistest.StartProxy(t, redistest.Start(t))))
	_, err := store.Learned("", algo.Rate{})
	require.ErrorContains(t, err, "name")
	_, err = store.Learned("x", algo.Rate{Count: -1, Period: time.Second})
	require.ErrorContains(t, err, "want a positive one")
	l := must[*distributed.Learned](t)(store.Learned("x", algo.Rate{}))
	_, err = l.Acquire(ctx, "", -1)
	require.ErrorIs(t, err, algo.ErrCost)
	require.InDelta(t, 1, l.Stats("k").Rate, 0)
	require.NoError(t, store.Close())
	_, err = l.Acquire(ctx, "", 1)
	require.ErrorIs(t, err, distributed.ErrClosed)
}
