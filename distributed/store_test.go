package distributed_test

import (
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

// nowhere is a client of a server that does not exist.
func nowhere(t testing.TB) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestNewNeedsNoRedisAndStartsNothing(t *testing.T) {
	client := nowhere(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	began := time.Now()
	store, err := distributed.New(client)
	require.NoError(t, err)
	_, err = store.TokenBucket("a", algo.PerSecond(1))
	require.NoError(t, err)
	require.Less(t, time.Since(began), time.Second)
}

func TestOptionsNameTheFieldAndTheValue(t *testing.T) {
	for _, tc := range []struct {
		option distributed.Option
		says   string
	}{
		{distributed.WithTimeout(0), "timeout is 0s"},
		{distributed.WithTimeout(time.Hour), "timeout is 1h0m0s"},
		{distributed.WithPrefix(""), "prefix is empty"},
		{distributed.WithFallback(9), "fallback is 9"},
		{distributed.WithInstances(0), "instances is 0"},
		{distributed.WithRecovery(7), "recovery is 7"},
		{distributed.WithProbeInterval(1), "probe interval is 1ns"},
		{distributed.WithDenyCache(-1), "deny cache is -1"},
		{distributed.WithBlocks(0), "excess is 0"},
		{distributed.WithLogger(nil), "logger is nil"},
		{distributed.WithHook(nil), "hook is nil"},
		{nil, "option 0 is nil"},
	} {
		_, err := distributed.New(nowhere(t), tc.option)
		require.ErrorContains(t, err, tc.says)
	}
	_, err := distributed.New(nil)
	require.ErrorContains(t, err, "client is nil")
	_, err = distributed.New(nowhere(t), distributed.WithLogger(slog.Default()))
	require.NoError(t, err)
}

func TestLimitsNameTheFieldAndTheValue(t *testing.T) {
	store := newStore(t, nowhere(t))
	for _, tc := range []struct {
		name string
		rate algo.Rate
		opts []algo.Option
		says string
	}{
		{"", algo.PerSecond(1), nil, "name"},
		{"a", algo.PerSecond(0), nil, "count is 0"},
		{"a", algo.Per(1, 0), nil, "period is 0s"},
		{"a", algo.PerSecond(1_000_001), nil, "faster than 1e6"},
		{"a", algo.PerSecond(1), []algo.Option{algo.Burst(-1)}, "burst is -1"},
		{"a", algo.PerDay(1), []algo.Option{algo.Burst(1 << 50)}, "burst is"},
		{"a", algo.PerSecond(1), []algo.Option{{}}, "zero Option"},
	} {
		_, err := store.TokenBucket(tc.name, tc.rate, tc.opts...)
		require.ErrorContains(t, err, tc.says)
	}
}

// The default burst of a rate of which no whole number of microseconds makes up
// the period takes a little more than the period to fill.
func TestDefaultBurstOfAnyRate(t *testing.T) {
	store, _ := onRedis(t)
	const year = 365 * 24 * time.Hour
	for _, n := range []int64{1, 7, 11, 1e6 + 3, year.Microseconds()/2 + 1, year.Microseconds()} {
		for name, make := range map[string]maker{"token bucket": store.TokenBucket, "leaky bucket": store.LeakyBucket} {
			l, err := make(name+strconv.FormatInt(n, 10), algo.Per(n, year))
			require.NoError(t, err)
			require.Equal(t, n, remote(t, l, "k", n).Limit)
			d := remote(t, l, "k", n)
			require.False(t, d.Allowed)
			require.Equal(t, algo.Quota, d.Reason)
			_, err = make("more", algo.Per(n, year), algo.Burst(n+1))
			require.ErrorContains(t, err, "takes longer than 8760h0m0s to fill")
		}
	}
}

func TestNegativeCostIsAnError(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1)))
	_, err := l.Acquire(ctx, "k", -1)
	require.ErrorIs(t, err, algo.ErrCost)
	require.Equal(t, int64(1), remote(t, l, "k", 0).Remaining)
}

// G1: nothing outlives Close, whatever state Redis is in.
func TestNothingOutlivesClose(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault redistest.Fault
	}{
		{"healthy", redistest.Fault{}},
		{"refused", redistest.Fault{Refuse: true}},
		{"black hole", redistest.Fault{BlackHole: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			proxy := redistest.StartProxy(t, redistest.Start(t))
			before := goleak.IgnoreCurrent()
			client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ReadTimeout: 200 * time.Millisecond, DialerRetries: 1})
			proxy.Set(tc.fault)
			store, err := distributed.New(client, distributed.WithTimeout(20*time.Millisecond),
				distributed.WithProbeInterval(30*time.Millisecond), distributed.WithLogger(slog.New(slog.DiscardHandler)))
			require.NoError(t, err)
			l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerSecond(1000)))
			for range 20 {
				acquire(t, l, "k", 1)
			}
			require.NoError(t, store.Close())
			require.NoError(t, store.Close(), "twice is once")
			_, err = l.Acquire(ctx, "k", 1)
			require.ErrorIs(t, err, distributed.ErrClosed)
			require.ErrorIs(t, l.Reset(ctx, "k"), distributed.ErrClosed)
			_, err = store.TokenBucket("b", algo.PerSecond(1))
			require.ErrorIs(t, err, distributed.ErrClosed)
			proxy.Set(redistest.Fault{})
			require.NoError(t, client.Close())
			goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction(
				"github.com/sluice-go/sluice/internal/redistest.(*Proxy).accept"), goleak.IgnoreAnyFunction(
				"github.com/sluice-go/sluice/internal/redistest.(*Proxy).replies"))
		})
	}
}

func TestResetAndBlock(t *testing.T) {
	store, server := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(3)))
	remote(t, l, "alice", 3)
	require.NoError(t, l.Reset(ctx, "alice"))
	require.Equal(t, int64(3), acquire(t, l, "alice", 0).Remaining)

	require.NoError(t, l.Block(ctx, "alice", time.Hour))
	blocked := acquire(t, l, "alice", 1)
	require.False(t, blocked.Allowed)
	require.Equal(t, algo.Quota, blocked.Reason)
	require.Greater(t, blocked.RetryAfter, 59*time.Minute)
	require.LessOrEqual(t, blocked.RetryAfter, time.Hour+time.Millisecond)
	peek := acquire(t, l, "alice", 0)
	require.Zero(t, peek.Remaining)
	require.True(t, remote(t, l, "bob", 1).Allowed)
	requireTTL(t, server)

	require.NoError(t, l.Block(ctx, "alice", time.Minute), "a shorter block does not shorten")
	require.Greater(t, acquire(t, l, "alice", 1).RetryAfter, 59*time.Minute)
	require.NoError(t, l.Reset(ctx, "alice"))
	require.True(t, acquire(t, l, "alice", 3).Allowed)
	for _, bad := range []time.Duration{0, -1, 1 << 62} {
		require.ErrorContains(t, l.Block(ctx, "alice", bad), "block is")
	}
}

func TestReleaseAndSettle(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(10)))
	left := func() int64 { return remote(t, l, "alice", 0).Remaining }
	lease := remote(t, l, "alice", 4)
	lease.Release(algo.Canceled)
	lease.Release(algo.Canceled)
	require.Equal(t, int64(10), left())

	lease = remote(t, l, "alice", 4)
	lease.Settle(1)
	require.Equal(t, int64(9), left())
	lease.Settle(6)
	require.Equal(t, int64(4), left())
	lease.Release(algo.Succeeded)
	require.Equal(t, int64(4), left())
	lease = remote(t, l, "alice", 1)
	lease.Settle(1 << 60)
	lease.Release(algo.Failed)
	require.Zero(t, left())
	require.LessOrEqual(t, remote(t, l, "alice", 0).ResetAfter, time.Hour, "debt is bounded")
}

func TestLimitsChangeWhileTheyRun(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(10)))
	remote(t, l, "alice", 10)
	require.NoError(t, l.SetRate(algo.PerHour(20)))
	d := acquire(t, l, "alice", 0)
	require.Equal(t, int64(20), d.Limit, "the burst follows the rate")
	require.Zero(t, d.Remaining, "debt is time, and stays")
	require.NoError(t, l.SetBurst(5))
	require.Equal(t, int64(5), acquire(t, l, "alice", 0).Limit)
	require.Error(t, l.SetRate(algo.Rate{}))
	require.Error(t, l.SetBurst(0))
	desc, ok := algo.Describe(l)
	require.True(t, ok)
	require.Equal(t, algo.Description{Quota: 5, Window: 15 * time.Minute}, desc)
}
