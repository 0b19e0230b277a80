package distributed_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	teams "github.com/sluice-go/sluice/algo/shares"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

func TestSharesOnRedis(t *testing.T) {
	s, server := onRedis(t, distributed.WithInstances(1)) // no heartbeats
	require.NoError(t, s.Ping(ctx))
	floors := map[string]int64{"a": 500, "b": 300}
	shares := must[*distributed.Shares](t)(s.Shares("org", algo.Per(1000, 1000*time.Hour), floors, algo.Burst(100)))
	a, b, other := shares.Child("a"), shares.Child("b"), shares.Child("c")
	require.Same(t, other, shares.Child("d"))
	local := algo.Must(teams.New(algo.Per(1000, 1000*time.Hour), floors, algo.Burst(100)))
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
	require.Equal(t, algo.Banned, remote(t, b, "k", 1).Reason)
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
	require.Positive(t, e.count(distributed.KeyFault))
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

// sharesOnInstances makes the same shares of 500 units a second on four instances: search and
// batch have floors of 200.
func sharesOnInstances(t *testing.T, server *redistest.Server, burst int64) (all []*distributed.Shares) {
	for range 4 {
		s := newStore(t, server.Client())
		shares := must[*distributed.Shares](t)(s.Shares("org", algo.PerSecond(500), map[string]int64{"search": 200, "batch": 200}, algo.Burst(burst)))
		remote(t, shares.Child("search"), "warm up", 0)
		all = append(all, shares)
	}
	return all
}

// serverTime is the clock by which the scripts count, in seconds.
func serverTime(t *testing.T, server *redistest.Server) float64 {
	parts := server.Do("TIME").([]any)
	at := must[time.Duration](t)(time.ParseDuration(fmt.Sprintf("%vs%vus", parts[0], parts[1])))
	return at.Seconds()
}

// TestW2_SharesLendOnRedis: a child without a floor gets everything that refills while the
// others are idle: at least .98 of it, and no more than all by the server's clock.
func TestW2_SharesLendOnRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var borrowers []*distributed.Limiter
	for _, shares := range sharesOnInstances(t, server, 5000) {
		borrowers = append(borrowers, shares.Child("other"))
	}
	var lent int64
	var first, last [2]float64 // before and after the burst was spent, and the last look at the units
	for n := 0; n < 20 || last[0] < first[1]+1; n++ {
		l, before := borrowers[n%len(borrowers)], serverTime(t, server)
		left := remote(t, l, "k", 0).Remaining
		last = [2]float64{before, serverTime(t, server)}
		require.True(t, remote(t, l, "k", left).Allowed)
		if lent += left; n == 0 {
			first, lent = [2]float64{before, serverTime(t, server)}, 0 // the burst: until it is spent nothing comes in
		}
		time.Sleep(50 * time.Millisecond)
	}
	least, most := 500*(last[0]-first[1]), 500*(last[1]-first[0])
	t.Logf("W2: %d units lent of %.0f to %.0f that came in", lent, least, most)
	require.GreaterOrEqual(t, float64(lent), .98*least)
	require.LessOrEqual(t, float64(lent), most+1)
}

// TestW2_SharesOnRedis: four instances flood a limit, and a child with a floor comes back. It
// has its floor at once, and again as soon as that has come in, however busy the machine is;
// all together keep the bound.
func TestW2_SharesOnRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const burst, depth, refill = 100, 20, 100 * time.Millisecond // of search: a fifth of the burst, at 200 a second
	shares := sharesOnInstances(t, server, burst)
	var served, denied [3]atomic.Int64 // search, batch, other
	var flood sync.WaitGroup
	began, done := serverTime(t, server), make(chan struct{})
	for _, all := range shares {
		for i, name := range map[int]string{1: "batch", 2: "other"} {
			flood.Go(func() {
				for {
					select {
					case <-done:
						return
					case <-time.After(2 * time.Millisecond):
					}
					if remote(t, all.Child(name), "k", 1).Allowed {
						served[i].Add(1)
					} else {
						denied[i].Add(1)
					}
				}
			})
		}
	}
	stop := sync.OnceFunc(func() { close(done); flood.Wait() })
	defer stop()
	require.Eventually(t, func() bool { return denied[2].Load() > 20 }, patient, time.Millisecond, "all is lent")
	search, want := shares[0].Child("search"), int64(0)
	for n := range 12 {
		lease := remote(t, search, "k", depth)
		require.True(t, lease.Allowed, "%d: %v", n, lease.Decision)
		want += depth
		if remote(t, search, "k", depth).Allowed { // more than its floor
			want += depth
		} else {
			denied[0].Add(1)
		}
		time.Sleep(refill + time.Millisecond)
	}
	served[0].Store(want)
	stop()
	elapsed := serverTime(t, server) - began
	sum := served[0].Load() + served[1].Load() + served[2].Load()
	t.Logf("W2: %.3f s: %d units of the child with a floor, %d and %d of the others; its floor was back after %v", elapsed, served[0].Load(), served[1].Load(), served[2].Load(), refill)
	require.LessOrEqual(t, float64(sum), burst+500*elapsed)
	require.Positive(t, denied[0].Load(), "nothing is left beside its floor")
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
