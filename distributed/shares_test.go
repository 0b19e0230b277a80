package distributed_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

func TestSharesOnRedis(t *testing.T) {
	s, server := onRedis(t)
	floors := map[string]int64{"a": 500, "b": 300}
	shares := must[*distributed.Shares](t)(s.Shares("org", algo.Per(1000, 1000*time.Hour), floors, algo.Burst(100)))
	a, b, other := shares.Child("a"), shares.Child("b"), shares.Child("c")
	require.Same(t, other, shares.Child("d"))
	local := algo.Must(algo.NewShares(algo.Per(1000, 1000*time.Hour), floors, algo.Burst(100)))
	for name, l := range map[string]*distributed.Limiter{"a": a, "b": b, "c": other} {
		want := must[algo.Lease](t)(local.Child(name).Acquire(ctx, "k", 0))
		require.Equal(t, want.Limit, remote(t, l, "k", 0).Limit)
		require.Equal(t, want.Limit, remote(t, l, "k", 0).Remaining)
	}
	lent := remote(t, other, "k", 0).Remaining
	calls := evalCalls(server)
	lease := remote(t, other, "k", lent)
	require.Equal(t, calls+1, evalCalls(server), "one round trip")
	require.True(t, lease.Allowed)
	require.False(t, remote(t, other, "k", 1).Allowed)
	floor := remote(t, a, "k", 0).Remaining
	require.Positive(t, floor, "a floor is not lent")
	require.True(t, remote(t, a, "k", floor).Allowed)
	denied := remote(t, a, "k", 1)
	require.False(t, denied.Allowed)
	require.InDelta(t, time.Hour, denied.RetryAfter, float64(time.Minute), "b is idle and lends all of its floor")

	lease.Settle(lent - 10)
	require.Eventually(t, func() bool { return remote(t, other, "k", 0).Remaining == 10 }, patient, time.Millisecond)
	lease.Release(algo.Canceled)
	require.Eventually(t, func() bool { return remote(t, other, "k", 0).Remaining == lent }, patient, time.Millisecond)
	over := remote(t, other, "k", 1)
	over.Settle(1 << 40)
	require.Eventually(t, func() bool { return remote(t, other, "k", 0).Remaining == 0 }, patient, time.Millisecond)
	require.Positive(t, remote(t, b, "k", 0).Remaining, "debt takes no floor from another child")
	require.NoError(t, a.Ban(ctx, "k", time.Hour))
	require.True(t, remote(t, b, "k", 1).Banned)
	require.NoError(t, b.Reset(ctx, "k"))
	require.Equal(t, lent, remote(t, other, "k", 0).Remaining)
	require.True(t, remote(t, a, "", 1).Allowed)
	require.ErrorContains(t, a.SetRate(algo.PerHour(1)), "cannot be changed in use")
	requireTTL(t, server)
}

// Instances with other parameters leave the key alone.
func TestSharesOfOtherParameters(t *testing.T) {
	server, e := redistest.Start(t), new(events)
	rate := algo.PerHour(100)
	a := must[*distributed.Shares](t)(newStore(t, server.Client()).Shares("org", rate, map[string]int64{"x": 50})).Child("x")
	b := must[*distributed.Shares](t)(newStore(t, server.Client(), distributed.WithHook(e.hook)).Shares("org", rate, map[string]int64{"x": 60})).Child("x")
	require.True(t, remote(t, a, "k", 40).Allowed)
	require.Equal(t, algo.SourceFallback, acquire(t, b, "k", 1).Source)
	require.Equal(t, distributed.KeyFault, e.all[len(e.all)-1].Kind)
	for _, f := range []func() error{
		func() error {
			_, err := newStore(t, server.Client()).Shares("org", rate, map[string]int64{"x": 101})
			return err
		},
		func() error {
			_, err := newStore(t, server.Client()).Shares("org", rate, nil, algo.MaxWait(time.Second))
			return err
		},
		func() error { _, err := newStore(t, server.Client()).Shares("", rate, nil); return err },
	} {
		require.ErrorContains(t, f(), "distributed: shares")
	}
}

// TestW2_SharesOnRedis: four instances flood a limit, whose child with a floor asks for just
// that. It gets that, the others the
// rest, and all together keep the bound.
func TestW2_SharesOnRedis(t *testing.T) {
	server := redistest.Start(t)
	const long, rate, burst = 2 * time.Second, 500, 100
	var mu sync.Mutex
	served, denied := map[string]int64{}, map[string]int64{}
	var group sync.WaitGroup
	var shares []*distributed.Shares
	for range 4 {
		s := newStore(t, server.Client())
		all := must[*distributed.Shares](t)(s.Shares("org", algo.PerSecond(rate), map[string]int64{"search": 200, "batch": 200}, algo.Burst(burst)))
		remote(t, all.Child("search"), "warm up", 0)
		shares = append(shares, all)
	}
	start := time.Now()
	for i, all := range shares {
		for _, name := range []string{"search", "batch", "other"} {
			if name == "search" && i > 0 {
				continue
			}
			group.Go(func() {
				for n := 1; time.Since(start) < long; n++ {
					pause := 2 * time.Millisecond
					if name == "search" { // 180 a second, however late the sleeps
						pause = time.Until(start.Add(time.Duration(n) * time.Second / 180))
					}
					time.Sleep(pause)
					lease := remote(t, all.Child(name), "k", 1)
					mu.Lock()
					if lease.Allowed {
						served[name]++
					} else {
						denied[name]++
					}
					mu.Unlock()
				}
			})
		}
	}
	group.Wait()
	elapsed := time.Since(start)
	sum := served["search"] + served["batch"] + served["other"]
	t.Logf("served %v, denied %v in %v", served, denied, elapsed)
	require.LessOrEqual(t, sum, int64(burst+elapsed.Seconds()*rate)+1)
	require.Positive(t, denied["other"])
	require.GreaterOrEqual(t, served["search"], int64(180), "half of what it asked for, on a busy machine")
}

// TestW3_SharesWithoutRedis: without Redis one instance divides its part in the same way.
func TestW3_SharesWithoutRedis(t *testing.T) {
	server, e := redistest.Start(t), new(events)
	s := newStore(t, server.Client(), quick(e)...)
	shares := must[*distributed.Shares](t)(s.Shares("org", algo.Per(1000, 1000*time.Hour), map[string]int64{"a": 500}, algo.Burst(100)))
	require.True(t, remote(t, shares.Child("b"), "k", 20).Allowed)
	server.Kill()
	var admitted int64
	for _, name := range []string{"b", "a"} {
		for {
			lease := acquire(t, shares.Child(name), "k", 1)
			require.Equal(t, algo.SourceFallback, lease.Source)
			if !lease.Allowed {
				break
			}
			admitted++
		}
	}
	require.LessOrEqual(t, admitted, int64(100))
	require.GreaterOrEqual(t, admitted, int64(80))
}
