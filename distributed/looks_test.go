package distributed_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/distributed"
)

// everyLimit are the limits of a store, with room for a few units of a key.
func everyLimit(t *testing.T, store *distributed.Store) map[string]algo.Limiter {
	made := map[string]algo.Limiter{
		"in flight": must[*distributed.Limiter](t)(store.InFlight("in flight", 4, time.Minute)),
		"learned":   must[*distributed.Learned](t)(store.Learned("learned", algo.PerHour(4))),
		"shares":    must[*distributed.Shares](t)(store.Shares("shares", algo.PerHour(4), map[string]int64{"a": 2})).Child("a"),
		"credits":   must[*distributed.Credits](t)(store.Credits("credits")),
	}
	for _, text := range []string{
		"4/h", "4/h wait 30m", "leaky-bucket 4/h", "pacer 4/h slack 3", "pacer 4/h wait 1h queue 2", "smooth-warming-up 4/h warmup 1h wait 1h",
		"fixed-window 4/h", "fixed-window 4/h spread", "fixed-window 4/day zone UTC", "sliding-window 4/h", "sliding-log 4/h",
	} {
		l := must[*distributed.Limiter](t)(store.Limiter(text, must[algo.Spec](t)(algo.Parse(text))))
		made[text] = l
		made["ban of "+text] = must[*distributed.Ban](t)(distributed.NewBan(l, algo.PerHour(1000), time.Hour, time.Hour))
	}
	return made
}

var compositions = map[string]func(algo.Limiter) algo.Limiter{
	"alone":        func(l algo.Limiter) algo.Limiter { return l },
	"All, first":   func(l algo.Limiter) algo.Limiter { return algo.All(l, roomy()) },
	"All, last":    func(l algo.Limiter) algo.Limiter { return algo.All(roomy(), l) },
	"Shadow":       algo.Shadow,
	"Switch":       func(l algo.Limiter) algo.Limiter { return algo.NewSwitch(l) },
	"FailuresOnly": guard.FailuresOnly,
	"First":        func(l algo.Limiter) algo.Limiter { return prepaid.First(l, prepaid.NewCredits()) },
	"Ban": func(l algo.Limiter) algo.Limiter {
		return algo.Must(guard.NewBan(l, algo.PerHour(1000), time.Hour, time.Hour))
	},
}

func roomy() algo.Limiter { return algo.Must(algo.NewTokenBucket(algo.PerHour(1_000_000))) }

// answersAlike requires that a look at l and then a charge have one answer, and that the look
// changes nothing.
func answersAlike(t *testing.T, l algo.Limiter, key string, n int64, says string) {
	t.Helper()
	look := must[algo.Decision](t)(algo.Peek(ctx, l, key, n))
	again := must[algo.Decision](t)(algo.Peek(ctx, l, key, n))
	lease := must[algo.Lease](t)(l.Acquire(ctx, key, n))
	for _, d := range []algo.Decision{again, lease.Decision} {
		require.InDelta(t, look.RetryAfter, d.RetryAfter, float64(time.Second), says)
		require.InDelta(t, look.Delay, d.Delay, float64(time.Second), says)
		require.Equal(t, []any{look.Allowed, look.Reason, look.Cause, look.Trial, look.Limit}, []any{d.Allowed, d.Reason, d.Cause, d.Trial, d.Limit}, says)
		if !d.Allowed || n == 0 {
			require.Equal(t, look.Remaining, d.Remaining, says)
		}
	}
	require.Equal(t, look.Remaining, again.Remaining, says)
	lease.Release(algo.Canceled)
}

// TestW4_LooksAtRedisAnswerAsCharges: a look at each limit of a store, in each composition, and the charge
// after it have one answer: with all units, some and none, and for a cost that never fits.
func TestW4_LooksAtRedisAnswerAsCharges(t *testing.T) {
	store, _ := onRedis(t, distributed.WithDenyCache(0))
	pairs := 0
	for name, l := range everyLimit(t, store) {
		for how, compose := range compositions {
			t.Run(name+", "+how, func(t *testing.T) {
				pairs++
				l, composed := l, compose(l)
				for _, spent := range []int64{0, 2, 4} {
					for _, n := range []int64{0, 1, 2, 3, 1 << 40} {
						key := fmt.Sprint(how, spent, n)
						if c, ok := l.(*distributed.Credits); ok {
							require.NoError(t, c.TopUp(ctx, key, "1", 4))
						}
						for range spent {
							acquire(t, l, key, 1)
						}
						answersAlike(t, composed, key, n, fmt.Sprintf("%d spent, %d units", spent, n))
					}
				}
			})
		}
	}
	t.Logf("%d pairs of limiter and composition", pairs)
}

// Beside the denial of another limit the answer suffices for all units of the request.
func TestW4_BesideADenialOnRedis(t *testing.T) {
	store, _ := onRedis(t)
	denies := algo.Must(algo.NewTokenBucket(algo.PerSecond(1000)))
	require.True(t, denies.Allow("k", 1000))
	for name, l := range everyLimit(t, store) {
		if name == "learned" || name == "credits" { // have no burst, or no units
			continue
		}
		require.True(t, acquire(t, l, "k", 1).Allowed, name)
		for _, n := range []int64{4, 1 << 40} {
			alone := must[algo.Decision](t)(algo.Peek(ctx, l, "k", n))
			lease := must[algo.Lease](t)(algo.AcquireAll(ctx, algo.Request{Limiter: algo.DenyAll(), Key: "k", N: 1}, algo.Request{Limiter: l, Key: "k", N: n}))
			require.False(t, lease.Allowed)
			require.Equal(t, alone.Reason, lease.Parts()[1].Reason, name)
			require.InDelta(t, alone.RetryAfter, lease.Parts()[1].RetryAfter, float64(time.Second), name)
		}
	}
}

// Without Redis a look answers as the charge too, and moves nothing.
func TestW4_LooksWithoutRedis(t *testing.T) {
	for name, policy := range map[string]distributed.Fallback{
		"local": distributed.FallbackLocal, "deny": distributed.FallbackDeny, "allow": distributed.FallbackAllow,
	} {
		t.Run(name, func(t *testing.T) {
			store := must[*distributed.Store](t)(distributed.NewWithTransport(deadEnd{}, distributed.WithInstances(2), distributed.WithFallback(policy), distributed.WithLogger(slog.New(slog.DiscardHandler))))
			defer func() { require.NoError(t, store.Close()) }()
			for name, l := range everyLimit(t, store) {
				if name == "credits" {
					continue
				}
				for spent := range 4 {
					for _, n := range []int64{0, 1, 2, 3, 4, 1 << 40} {
						key := fmt.Sprint(spent, n)
						for range spent {
							acquire(t, l, key, 1)
						}
						answersAlike(t, l, key, n, fmt.Sprintf("%s: %d spent, %d units", name, spent, n))
					}
				}
			}
		})
	}
}

// Looks at a ban count no denial, and see one.
func TestLooksAtABan(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.SlidingLog("login", algo.PerHour(1)))
	b := must[*distributed.Ban](t)(distributed.NewBan(l, algo.PerHour(2), time.Hour, time.Hour))
	require.True(t, remote(t, b, "k", 1).Allowed)
	for range 5 {
		require.Equal(t, algo.Quota, must[algo.Decision](t)(algo.Peek(ctx, b, "k", 1)).Reason)
	}
	require.Equal(t, algo.Quota, acquire(t, b, "k", 1).Reason)
	require.Equal(t, algo.Banned, acquire(t, b, "k", 1).Reason)
	require.Equal(t, algo.Banned, must[algo.Decision](t)(algo.Peek(ctx, b, "k", 0)).Reason)
	require.Equal(t, algo.Quota, must[algo.Decision](t)(algo.Peek(ctx, l, "k", 1)).Reason, "the limit is not banned")
	_, err := b.Peek(ctx, "k", -1)
	require.ErrorIs(t, err, algo.ErrCost)
}

// A look at a block spends none of it.
func TestLooksAtABlock(t *testing.T) {
	store, _ := onRedis(t, distributed.WithBlocks(20), distributed.WithInstances(1))
	l := must[*distributed.Limiter](t)(store.TokenBucket("busy", algo.PerHour(1000)))
	var lease algo.Lease
	require.Eventually(t, func() bool { lease = acquire(t, l, "k", 1); return lease.Source == algo.SourceBlock }, 5*time.Second, time.Millisecond)
	for range 3 {
		d := must[algo.Decision](t)(l.Peek(ctx, "k", 1))
		if d.Source == algo.SourceBlock { // it has not ended meanwhile
			require.Equal(t, lease.Remaining, d.Remaining)
		}
	}
}

// A region's limit has no units of its own at first.
func TestLooksAtARegion(t *testing.T) {
	global, _ := onRedis(t)
	region, _ := onRedis(t)
	bucket := must[*distributed.Limiter](t)(global.TokenBucket("all", algo.PerHour(100)))
	l := must[*distributed.Limiter](t)(region.Region(bucket, 2, 40))
	for _, n := range []int64{0, 1, 10, 15, 21} {
		answersAlike(t, l, fmt.Sprint(n), n, fmt.Sprint(n))
	}
}
