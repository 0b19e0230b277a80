package distributed_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// world is regions with a Redis each, and a Redis that all share, which is far away.
type world struct {
	shared  *redistest.Server
	homes   []*redistest.Server
	proxies []*redistest.Proxy
	limits  [][]*distributed.Limiter // by region and instance
	global  *distributed.Limiter
}

const distance = 80 * time.Millisecond

func startWorld(t *testing.T, regions, instances int, r algo.Rate, burst, excess int64) *world {
	w := &world{shared: redistest.Start(t)}
	w.global = must[*distributed.Limiter](t)(newStore(t, w.shared.Client()).TokenBucket("a", r, algo.Burst(burst)))
	for range regions {
		home, proxy := redistest.Start(t), redistest.StartProxy(t, w.shared)
		proxy.Set(redistest.Fault{Delay: distance})
		var limits []*distributed.Limiter
		for range instances {
			far := newStore(t, viaProxy(t, proxy), distributed.WithTimeout(time.Second), distributed.WithInstances(1), distributed.ProbeEvery(100*time.Millisecond))
			global := must[*distributed.Limiter](t)(far.TokenBucket("a", r, algo.Burst(burst)))
			near := newStore(t, home.Client(), distributed.WithInstances(instances))
			limits = append(limits, must[*distributed.Limiter](t)(near.Region(global, regions, excess)))
		}
		w.homes, w.proxies, w.limits = append(w.homes, home), append(w.proxies, proxy), append(w.limits, limits)
	}
	return w
}

// spend lets four callers of each instance of a region ask for units until d has passed.
func (w *world) spend(key string, d time.Duration) (admitted []int64, took []time.Duration) {
	var mu sync.Mutex
	var group sync.WaitGroup
	admitted = make([]int64, len(w.limits))
	for g, limits := range w.limits {
		for _, l := range slices.Repeat(limits, 4) {
			group.Go(func() {
				for began := time.Now(); time.Since(began) < d; time.Sleep(4 * time.Millisecond) {
					asked := time.Now()
					lease, err := l.Acquire(ctx, key, 1)
					after := time.Since(asked)
					mu.Lock()
					took = append(took, after)
					if err == nil && lease.Allowed {
						admitted[g]++
					}
					mu.Unlock()
				}
			})
		}
	}
	group.Wait()
	slices.Sort(took)
	return admitted, took
}

func sum(n []int64) (all int64) {
	for _, x := range n {
		all += x
	}
	return all
}

// TestW2_RegionsKeepTheirBound: three regions with a Redis each, 80 ms from the one that they
// share. No decision waits for that. A region that is cut off spends its floor, and takes part again afterwards.
func TestW2_RegionsKeepTheirBound(t *testing.T) {
	cases.Slow(t)
	t.Parallel()
	const rate, burst, excess, regions, part = 300, 600, 450, 3, 150
	w := startWorld(t, regions, 2, algo.PerSecond(rate), burst, excess)
	began := time.Now()
	all, took := w.spend("k", 4*time.Second)
	budget := burst + rate*time.Since(began).Seconds()
	t.Logf("W2: %d of %.0f units, %.2f of them; %v by region; %d decisions, median %v, p99 %v at a distance of %v; %d calls to the shared Redis",
		sum(all), budget, float64(sum(all))/budget, all, len(took), took[len(took)/2], took[len(took)*99/100], distance, evalCalls(w.shared))
	require.LessOrEqual(t, float64(sum(all)), budget+excess)
	require.Greater(t, float64(sum(all)), .8*budget)
	require.Less(t, took[len(took)*9/10], distance/2, "decisions do not wait for the shared Redis")
	for _, home := range w.homes {
		requireTTL(t, home)
	}

	var first []time.Duration // of new keys, where each decision leases
	for i := range 20 {
		asked := time.Now()
		require.True(t, remote(t, w.limits[1][0], fmt.Sprint("user", i), 1).Allowed)
		first = append(first, time.Since(asked))
	}
	slices.Sort(first)
	require.Less(t, first[len(first)/2], distance/2)

	w.proxies[2].Set(redistest.Fault{Refuse: true})
	began = time.Now()
	cut, took := w.spend("new", 3*time.Second)
	t.Logf("W2: %v by region while the last is cut off; p99 %v", cut, took[len(took)*99/100])
	require.Equal(t, int64(part/2), cut[2], "it holds nothing of this key: its floor")
	require.LessOrEqual(t, float64(sum(cut)), rate*time.Since(began).Seconds()+excess+burst)
	require.Less(t, took[len(took)*9/10], distance/2)

	w.proxies[2].Set(redistest.Fault{Delay: distance})
	require.Eventually(t, func() bool {
		back, _ := w.spend("new", time.Second)
		return back[2] > 0
	}, 20*time.Second, time.Millisecond)
}

// One instance of a region leases for all; while the other regions are idle, a region uses
// the whole burst, and canceled units come back.
func TestRegionLeases(t *testing.T) {
	t.Parallel()
	w := startWorld(t, 1, 3, algo.PerDay(200), 200, 100)
	admitted := 0
	require.Eventually(t, func() bool {
		d := remote(t, w.limits[0][admitted%3], "k", 1)
		if d.Allowed {
			admitted++
		} else {
			require.Equal(t, algo.Quota, d.Reason)
			require.Positive(t, d.RetryAfter)
			time.Sleep(min(d.RetryAfter, 10*time.Millisecond))
		}
		return admitted == 200
	}, 30*time.Second, time.Microsecond)
	t.Logf("200 units, %d calls to the shared Redis", evalCalls(w.shared))
	require.Less(t, evalCalls(w.shared), 60)
	require.Eventually(t, func() bool { return remote(t, w.global, "k", 0).Remaining == 0 }, 5*time.Second, 10*time.Millisecond)

	l := w.limits[0][0]
	first := remote(t, l, "other", 20)
	require.Equal(t, int64(30), first.Remaining, "half of the excess")
	require.Equal(t, int64(100), first.Limit)
	require.Eventually(t, func() bool { return remote(t, l, "other", 0).Remaining >= 50 }, 5*time.Second, 10*time.Millisecond)
	left := remote(t, l, "other", 0).Remaining
	lease := remote(t, l, "other", 20)
	lease.Settle(5)
	require.GreaterOrEqual(t, remote(t, l, "other", 0).Remaining, left-5)
	require.Equal(t, algo.Never, remote(t, l, "other", 101).Reason)
	require.NoError(t, l.Ban(ctx, "other", time.Hour))
	require.Equal(t, algo.Banned, remote(t, w.limits[0][1], "other", 1).Reason)
	require.NoError(t, l.Reset(ctx, "other"))
	require.Equal(t, int64(50), remote(t, l, "other", 0).Remaining)
	require.Equal(t, int64(200), remote(t, w.global, "third", 0).Remaining, "peeks lease nothing")
}

// A caller that is gone when it should lease does not keep the others from it.
func TestRegionLateReplies(t *testing.T) {
	shared, home := redistest.Start(t), redistest.Start(t)
	virtually(t, home, func(t *testing.T, c *redis.Client, wire *redistest.Wire) {
		all, _ := redistest.Wired(t, shared)
		global := must[*distributed.Limiter](t)(newStore(t, all, distributed.WithInstances(1)).TokenBucket("a", algo.PerDay(100)))
		l := must[*distributed.Limiter](t)(newStore(t, c, distributed.WithInstances(1)).Region(global, 1, 20))
		remote(t, l, "k", 0)
		wire.Set(redistest.Fault{Delay: patient + time.Second})
		require.Equal(t, algo.SourceFallback, acquire(t, l, "k", 5).Source)
		wire.Set(redistest.Fault{})
		require.Eventually(t, func() bool { return remoteNow(t, l, "k") == 10 }, time.Minute, time.Millisecond, "refunded")
		require.True(t, remote(t, l, "k", 3).Allowed)
		require.Eventually(t, func() bool { return remote(t, global, "k", 0).Remaining <= 97 }, 5*time.Second, time.Millisecond,
			"less than the patience of a lease, eleven seconds")
	})
}

// Without its own Redis the instances of a region divide its floor.
func TestRegionWithoutItsRedis(t *testing.T) {
	t.Parallel()
	shared := redistest.Start(t)
	global := must[*distributed.Limiter](t)(newStore(t, shared.Client()).TokenBucket("a", algo.PerHour(100)))
	home := newStore(t, nowhere(t), distributed.WithInstances(2), distributed.WithTimeout(100*time.Millisecond))
	l := must[*distributed.Limiter](t)(home.Region(global, 5, 100))
	admitted := 0
	for range 30 {
		lease := acquire(t, l, "k", 1)
		require.Equal(t, algo.SourceFallback, lease.Source)
		if lease.Allowed {
			admitted++
		}
	}
	require.Equal(t, 5, admitted, "half of 20/2")
	require.Zero(t, evalCalls(shared))
}

func TestRegionErrors(t *testing.T) {
	shared, server := onRedis(t)
	store := newStore(t, server.Client()) // on the same Redis
	bucket := must[*distributed.Limiter](t)(shared.TokenBucket("a", algo.PerHour(100)))
	window := must[*distributed.Limiter](t)(shared.FixedWindow("b", algo.PerHour(100)))
	for want, err := range map[string]error{
		"is nil":                 second(store.Region(nil, 1, 1)),
		"token or leaky bucket":  second(store.Region(window, 1, 1)),
		"another Redis":          second(shared.Region(bucket, 1, 1)),
		"0 regions":              second(store.Region(bucket, 0, 1)),
		"an excess of 2, want":   second(store.Region(bucket, 3, 2)),
		"an excess of 101, want": second(store.Region(bucket, 3, 101)),
	} {
		require.ErrorContains(t, err, want)
	}
	l := must[*distributed.Limiter](t)(store.Region(bucket, 10, 100))
	require.ErrorContains(t, l.SetRate(algo.PerHour(1)), "cannot be changed in use")
	require.True(t, remote(t, l, "k", 1).Allowed)
	require.Eventually(t, func() bool { return remote(t, bucket, "k", 0).Remaining == 99 }, 5*time.Second, time.Millisecond, "its keys are others")
}
