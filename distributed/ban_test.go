package distributed_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

func newBan(t *testing.T, store *distributed.Store, r algo.Rate, first time.Duration) *distributed.Ban {
	l := must[*distributed.Limiter](t)(store.TokenBucket("login", r))
	return must[*distributed.Ban](t)(distributed.NewBan(l, algo.PerMinute(3), first, 4*first))
}

// Denials count over all instances, and all of them deny a banned key, each decision
// in one run of a script.
func TestBansHoldInAllInstances(t *testing.T) {
	server := redistest.Start(t)
	instance := func() *distributed.Ban {
		store := newStore(t, server.Client(), distributed.WithInstances(1))
		require.NoError(t, store.Ping(ctx)) // asks its own questions
		return newBan(t, store, algo.PerHour(1), 2*time.Hour)
	}
	a, b := instance(), instance()
	server.Do("CONFIG", "RESETSTAT")
	require.True(t, remote(t, a, "eve", 1).Allowed)
	for _, l := range []*distributed.Ban{a, b} {
		d := remote(t, l, "eve", 1).Decision
		require.Equal(t, algo.Quota, d.Reason)
		require.NotEqual(t, algo.Banned, d.Reason)
	}
	third := remote(t, b, "eve", 1).Decision
	for _, d := range []algo.Decision{third, remote(t, a, "eve", 0).Decision, remote(t, b, "eve", 99).Decision} {
		require.Equal(t, algo.Banned, d.Reason, "%+v", d)
		require.Equal(t, algo.Banned, d.Reason)
		require.InDelta(t, 2*time.Hour, d.RetryAfter, float64(time.Minute))
	}
	require.Equal(t, 6, evalCalls(server), "one for each decision")
	require.True(t, remote(t, a, "bob", 1).Allowed)
	require.InDelta(t, 2*time.Hour, must[time.Duration](t)(b.Banned(ctx, "eve")), float64(time.Minute))
	require.Zero(t, must[time.Duration](t)(b.Banned(ctx, "bob")))
	for range 9 {
		require.NotEqual(t, algo.Banned, acquire(t, a, "", 2).Reason, "all callers share the empty key")
	}
	requireTTL(t, server)

	require.NoError(t, a.Reset(ctx, "eve"))
	require.Zero(t, must[time.Duration](t)(b.Banned(ctx, "eve")))
	d := remote(t, b, "eve", 1).Decision
	require.False(t, d.Allowed, "the debt stays")
	require.NotEqual(t, algo.Banned, d.Reason)
}

// A ban forgives nothing: after it the key has the same debt, and the next ban is twice
// as long.
func TestBansForgiveNothing(t *testing.T) {
	t.Parallel()
	store, _ := onRedis(t)
	l := newBan(t, store, algo.PerDay(1), 200*time.Millisecond)
	require.True(t, remote(t, l, "k", 1).Allowed)
	for range 2 {
		require.Eventually(t, func() bool {
			d := remote(t, l, "k", 1).Decision
			require.False(t, d.Allowed)
			return d.RetryAfter > 12*time.Hour && d.Reason == algo.Quota && d.Reason != algo.Banned
		}, 20*time.Second, time.Millisecond)
	}
	require.Eventually(t, func() bool {
		left, err := l.Banned(ctx, "k")
		require.NoError(t, err)
		acquire(t, l, "k", 1)
		return left > 200*time.Millisecond
	}, 20*time.Second, time.Millisecond)
}

// A known ban is answered without Redis, and lasts while Redis is away. Other keys are
// the fallback's.
func TestBansWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	var e events
	store := newStore(t, viaProxy(t, proxy), append(quick(&e), distributed.WithTimeout(patient), distributed.WithDenyCache(100))...)
	require.NoError(t, store.Ping(ctx)) // asks its own questions
	l := newBan(t, store, algo.PerDay(2), time.Hour)
	for range 5 {
		remote(t, l, "eve", 1)
	}
	calls := evalCalls(server)
	d := acquire(t, l, "eve", 1).Decision
	require.Equal(t, algo.Banned, d.Reason)
	require.Equal(t, algo.SourceDenyCache, d.Source)
	require.Equal(t, calls, evalCalls(server))

	proxy.Set(redistest.Fault{Refuse: true})
	require.Eventually(t, func() bool {
		d := acquire(t, l, "eve", 1).Decision
		require.Equal(t, algo.Banned, d.Reason)
		return d.Source == algo.SourceFallback
	}, 10*time.Second, 10*time.Millisecond)
	bob := acquire(t, l, "bob", 1).Decision
	require.True(t, bob.Allowed)
	require.Equal(t, algo.SourceFallback, bob.Source)
	require.ErrorIs(t, l.Reset(ctx, "eve"), distributed.ErrUnavailable)
	_, err := l.Banned(ctx, "eve")
	require.ErrorIs(t, err, distributed.ErrUnavailable)

	proxy.Set(redistest.Fault{})
	other := newBan(t, newStore(t, server.Client()), algo.PerDay(2), time.Hour)
	require.NoError(t, other.Reset(ctx, "eve"))
	require.Eventually(t, func() bool {
		d := acquire(t, l, "eve", 1).Decision
		return d.Source == algo.SourceRemote && d.Reason != algo.Banned
	}, 10*time.Second, 10*time.Millisecond, "within a second of the ban's last answer")
}

// The charge of a caller that has gone on comes back.
func TestBansRefundLateReplies(t *testing.T) {
	virtually(t, redistest.Start(t), func(t *testing.T, c *redis.Client, wire *redistest.Wire) {
		l := newBan(t, newStore(t, c, distributed.WithInstances(1)), algo.PerHour(10), time.Hour)
		remote(t, l, "k", 0)
		wire.Set(redistest.Fault{Delay: patient + time.Second})
		require.Equal(t, algo.SourceFallback, acquire(t, l, "k", 5).Source)
		wire.Set(redistest.Fault{})
		require.Eventually(t, func() bool {
			lease := acquire(t, l, "k", 0)
			return lease.Source == algo.SourceRemote && lease.Remaining == 10
		}, time.Minute, 10*time.Millisecond)
	})
}

// The children of shares have one key, and so one ban.
func TestBansOfShares(t *testing.T) {
	store, _ := onRedis(t)
	shares := must[*distributed.Shares](t)(store.Shares("a", algo.PerHour(10), map[string]int64{"x": 4, "y": 2}))
	x := must[*distributed.Ban](t)(distributed.NewBan(shares.Child("x"), algo.PerMinute(2), time.Hour, time.Hour))
	y := must[*distributed.Ban](t)(distributed.NewBan(shares.Child("y"), algo.PerMinute(2), time.Hour, time.Hour))
	for remote(t, x, "k", 1).Allowed {
	}
	require.Positive(t, remote(t, y, "k", 0).Remaining, "its floor")
	require.False(t, remote(t, x, "k", 1).Allowed)
	require.Equal(t, algo.Banned, remote(t, y, "k", 1).Reason)
	require.NoError(t, y.Reset(ctx, "k"))
	require.True(t, remote(t, y, "k", 1).Allowed)
}

// A caller that takes only fitting units is not banned for asking for more.
func TestBansOfDividedRequests(t *testing.T) {
	store, _ := onRedis(t)
	ban := newBan(t, store, algo.PerDay(10), 4*time.Hour)
	for name, l := range map[string]algo.Limiter{"alone": ban, "switch": algo.NewSwitch(ban), "all": algo.All(ban)} {
		require.True(t, remote(t, ban, name, 6).Allowed)
		left := func() int64 { return remote(t, ban, name, 0).Remaining }
		for range 5 {
			lease, units, err := meter.AtMost(ctx, l, name, 8)
			require.NoError(t, err)
			require.NotEqual(t, algo.Banned, lease.Reason, name)
			require.Equal(t, int64(4), units, name)
			lease.Release(algo.Canceled)
			require.Eventually(t, func() bool { return left() == 4 }, patient, time.Millisecond)
			m := must[*meter.Meter](t)(meter.Start(ctx, l, name, 0, 8))
			d, err := m.Reserve(ctx, 3)
			require.NoError(t, err)
			require.True(t, d.Allowed, name)
			m.Close()
			require.Eventually(t, func() bool { return left() == 4 }, patient, time.Millisecond)
		}
		for range 2 {
			require.NotEqual(t, algo.Banned, remote(t, ban, name, 5).Reason)
		}
		require.Equal(t, algo.Banned, remote(t, ban, name, 5).Reason, "a denied request counts")
	}
}

func TestBanErrors(t *testing.T) {
	store, server := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1)))
	slots := must[*distributed.Limiter](t)(store.InFlight("b", 1, 30*time.Second))
	for want, err := range map[string]error{
		"denials: count is 0":     second(distributed.NewBan(l, algo.PerHour(0), time.Second, time.Minute)),
		"first ban is 0":          second(distributed.NewBan(l, algo.PerHour(1), 0, time.Minute)),
		"longest ban is 1s":       second(distributed.NewBan(l, algo.PerHour(1), time.Minute, time.Second)),
		"units in flight":         second(distributed.NewBan(slots, algo.PerHour(1), time.Second, time.Minute)),
		"ban: the limiter is nil": second(distributed.NewBan(nil, algo.PerHour(1), time.Second, time.Minute)),
		"want 0 or more":          second(newBan(t, store, algo.PerHour(1), time.Second).Acquire(ctx, "k", -1)),
	} {
		require.ErrorContains(t, err, want)
	}
	b := newBan(t, store, algo.PerHour(1), time.Second)
	d := b.About()
	require.Equal(t, int64(1), d.Quota)
	require.False(t, b.About().NeedsRelease)

	remote(t, b, "k", 2) // never
	require.Empty(t, server.Do("KEYS", "*{k}*"))
	remote(t, b, "k", 1)
	remote(t, b, "k", 1)
	for _, key := range server.Do("KEYS", "*ban").([]any) {
		server.Do("SET", key, "other", "EX", "60")
	}
	require.Equal(t, algo.SourceFallback, acquire(t, b, "k", 1).Source, "the value of another program")
	require.ErrorContains(t, b.Reset(ctx, "k"), "another algorithm")
	require.NoError(t, store.Close())
	require.ErrorIs(t, b.Reset(ctx, "k"), distributed.ErrClosed)
	_, err := b.Acquire(ctx, "k", 1)
	require.ErrorIs(t, err, distributed.ErrClosed)
}

func second[T any](_ T, err error) error { return err }

// Who waits as told commits no offence.
func TestWaitingIsNoOffence(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("patient", algo.PerSecond(5), algo.Burst(1)))
	b := must[*distributed.Ban](t)(distributed.NewBan(l, algo.PerHour(2), time.Hour, time.Hour))
	for range 6 {
		lease, err := algo.Wait(t.Context(), b, "alice", 1)
		require.NoError(t, err)
		lease.Release(algo.Succeeded)
	}
	require.Zero(t, must[time.Duration](t)(b.Banned(t.Context(), "alice")))
	for range 3 {
		acquire(t, b, "alice", 1)
	}
	require.NotZero(t, must[time.Duration](t)(b.Banned(t.Context(), "alice")))
}
