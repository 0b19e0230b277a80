package adaptive_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// tenants draws a tenant for each request, in proportion to loads.
func tenants(loads ...float64) (key func(int) string, total float64) {
	rng := rand.New(rand.NewPCG(7, 9))
	for _, x := range loads {
		total += x
	}
	return func(int) string {
		x := rng.Float64() * total
		for i, load := range loads {
			if x -= load; x < 0 {
				return "tenant-" + strconv.Itoa(i)
			}
		}
		return "tenant-0"
	}, total
}

// divided returns the parts of a processor's capacity that tenants with these loads
// get, from the third second on, and the total served.
func divided(t *testing.T, work time.Duration, loads []float64, opts ...adaptive.Option) (got []float64, all float64) {
	return dividedLater(t, work, loads, func(*adaptive.Limiter) {}, opts...)
}

// dividedLater is divided after a second of overload and a call of later.
func dividedLater(t *testing.T, work time.Duration, loads []float64, later func(*adaptive.Limiter), opts ...adaptive.Option) (got []float64, all float64) {
	m := newModel()
	key, total := tenants(loads...)
	var keys []string
	m.key = func(i int) string {
		for len(keys) <= i {
			keys = append(keys, key(i))
		}
		return keys[i]
	}
	l := m.limiter(t, adaptive.Default(m.option()), opts...)
	got = make([]float64, len(loads))
	const length, settle = 13 * time.Second, 3 * time.Second
	m.serve(t, l, work, total, time.Second)
	later(l)
	start := m.at
	for i, v := range m.serve(t, l, work, total, length) {
		if v.allowed && v.due >= start+settle && v.took < 500*time.Millisecond {
			tenant, err := strconv.Atoi(keys[i][len("tenant-"):])
			require.NoError(t, err)
			got[tenant] += work.Seconds() / (length - settle).Seconds()
			all += work.Seconds() / (length - settle).Seconds()
		}
	}
	return got, all
}

// TestSharesOfAFlood: one tenant asks for 4.5 times the capacity, nine for .5 of a
// tenth each: the nine get it, and as much is served as without shares.
func TestSharesOfAFlood(t *testing.T) {
	loads := []float64{4.5, .05, .05, .05, .05, .05, .05, .05, .05, .05}
	for _, work := range []time.Duration{500 * time.Microsecond, 5 * time.Millisecond} {
		t.Run(work.String(), func(t *testing.T) {
			before, most := divided(t, work, loads)
			got, all := divided(t, work, loads, adaptive.WithFairShares(nil))
			light, lightBefore := 0.0, 0.0
			for i := range 9 {
				light, lightBefore = light+got[i+1]/.45, lightBefore+before[i+1]/.45
			}
			require.Greater(t, light, .93)
			require.Less(t, lightBefore, .4, "without shares")
			require.Greater(t, all, .97*most)
		})
	}
}

// TestTenants: the list names the flood, how much it asks for, and that the others are
// admitted.
func TestTenants(t *testing.T) {
	loads := []float64{4.5, .05, .05, .05, .05, .05, .05, .05, .05, .05}
	m := newModel()
	key, total := tenants(loads...)
	m.key = key
	l := m.limiter(t, adaptive.Default(m.option()), adaptive.WithFairShares(nil))
	require.Empty(t, l.Tenants(10))
	m.serve(t, l, 5*time.Millisecond, total, 10*time.Second)
	got := l.Tenants(100)
	require.Len(t, got, 10)
	require.Equal(t, "tenant-0", got[0].Tenant)
	require.InDelta(t, 4.5/total, got[0].Asked, .05)
	require.InDelta(t, .5/4.5, got[0].Admitted, .05)
	for _, one := range got[1:] {
		require.Greater(t, one.Admitted, .85, "%v", got)
	}
	served := 0.0
	for _, one := range got {
		served += one.Served
	}
	require.InDelta(t, 1, served, 1e-6, "%v", got)
	require.InDelta(t, .5/.95, got[0].Served, .05, "%v", got)
	require.Equal(t, got[:3], l.Tenants(3))
	require.Empty(t, l.Tenants(-1))
	require.Empty(t, algo.Must(adaptive.New(adaptive.Default())).Tenants(10), "without shares")
}

// TestTenantsThatGiveUp: requests that leave the queue have asked, and were not admitted.
func TestTenantsThatGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(adaptive.New(adaptive.Fixed(1), adaptive.WithQueue(adaptive.FIFO(1, time.Minute)), adaptive.WithFairShares(nil)))
		defer l.Close()
		time.Sleep(time.Second)
		_, err := l.Acquire(t.Context(), "calm", 1)
		require.NoError(t, err)
		for range 3 {
			waiting, leave := context.WithCancel(t.Context())
			go l.Acquire(waiting, "leaver", 1) // takes the only place to wait
			synctest.Wait()
			lease, err := l.Acquire(t.Context(), "flood", 1)
			require.NoError(t, err)
			require.False(t, lease.Allowed)
			leave()
			synctest.Wait()
		}
		got := l.Tenants(10)
		require.Len(t, got, 2)
		for _, tenant := range got {
			require.InDelta(t, .5, tenant.Asked, .01, "%+v", got)
			require.Zero(t, tenant.Admitted)
		}
	})
}

// TestSharesAfterTheClock: the virtual clock begins again at its end, which small weights
// and many requests in flight reach in days.
func TestSharesAfterTheClock(t *testing.T) {
	loads := []float64{4.5, .05, .05, .05, .05, .05, .05, .05, .05, .05}
	got, _ := dividedLater(t, 5*time.Millisecond, loads, adaptive.AgeShares, adaptive.WithFairShares(nil))
	light := 0.0
	for i := range 9 {
		light += got[i+1] / .45
	}
	require.Greater(t, light, .93)
}

// TestSharesByWeight: tenants that all ask for more than they get are served in
// proportion to their weights. A weight that is none counts as 1.
func TestSharesByWeight(t *testing.T) {
	for _, one := range []float64{1, 0, -1, math.NaN(), math.Inf(1)} {
		t.Run(fmt.Sprint(one), func(t *testing.T) {
			weights := map[string]float64{"tenant-0": one, "tenant-1": 2, "tenant-2": 4}
			got, all := divided(t, time.Millisecond, []float64{2, 2, 2},
				adaptive.WithFairShares(func(tenant string) float64 { return weights[tenant] }))
			for i, want := range []float64{1, 2, 4} {
				require.InDelta(t, want/7, got[i]/all, .04, "%v", got)
			}
		})
	}
}

func TestUsableWeight(t *testing.T) {
	for w, want := range map[float64]float64{
		1: 1, 2.5: 2.5, 0: 1, -3: 1, math.Inf(1): 1, math.Inf(-1): 1, 1e-9: 1e-3, 1e9: 1e3,
	} {
		require.Equal(t, want, adaptive.UsableWeight(w), "%v", w)
	}
	require.Equal(t, 1.0, adaptive.UsableWeight(math.NaN()))
}

// TestSharesWithRoom: without overload a tenant may use everything.
func TestSharesWithRoom(t *testing.T) {
	got, all := divided(t, 5*time.Millisecond, []float64{.8, .05}, adaptive.WithFairShares(nil))
	require.InDelta(t, .8, got[0], .03)
	require.InDelta(t, .85, all, .01)
}

// TestSharesUnderClasses: a lower class is denied before a higher one, whatever the
// shares of the tenants are.
func TestSharesUnderClasses(t *testing.T) {
	m := newModel()
	m.key = func(i int) string { return []string{"flood", "light"}[i%10/9] } // the light one has a tenth
	m.class = func(i int) adaptive.Class {
		if i%20 == 0 {
			return adaptive.Critical // of the flood
		}
		return adaptive.Normal
	}
	l := m.limiter(t, adaptive.Default(m.option()), adaptive.WithFairShares(nil), adaptive.WithPriorities())
	arrivals := m.serve(t, l, 2*time.Millisecond, 3, 10*time.Second)
	require.Less(t, denied(of(arrivals, adaptive.Critical), 2*time.Second), .01)
	require.Positive(t, l.Explain().Denied.Share)
}

// TestSharesOfSlots: a limit on requests in flight is divided too.
func TestSharesOfSlots(t *testing.T) {
	light := func(t *testing.T, opts ...adaptive.Option) float64 {
		l := newLimiter(t, gated(50), opts...)
		key, _ := tenants(4.5, .05, .05, .05, .05, .05, .05, .05, .05, .05)
		asked, got := 0.0, 0.0
		for i := range 25_000 { // 500 a second are the capacity
			time.Sleep(time.Second / 2475)
			name := key(i)
			lease := acquire(t, l, name, 1)
			if name != "tenant-0" && i > 8000 {
				asked++
				if lease.Allowed {
					got++
				}
			}
			if lease.Allowed {
				go func() {
					time.Sleep(100 * time.Millisecond)
					lease.Release(algo.Succeeded)
				}()
			}
		}
		time.Sleep(time.Second)
		return got / asked
	}
	synctest.Test(t, func(t *testing.T) {
		require.Greater(t, light(t, adaptive.WithFairShares(nil)), .95)
		require.Less(t, light(t), .4, "without shares")
	})
}

// TestFairRate: from any first rate the fair rate becomes the max-min one.
func TestFairRate(t *testing.T) {
	for _, c := range []struct {
		demands []float64
		want    float64
	}{
		{[]float64{4.5, .05, .05, .05, .05, .05, .05, .05, .05, .05}, .55},
		{[]float64{2, 2, 2}, 1. / 3},
		{[]float64{1, .5, .2, .1}, .35},
		{[]float64{.1, .2, 64}, .7},
	} {
		for _, first := range []float64{.01, .3, 1, 64} {
			rates := adaptive.FairRates(first, 1, c.demands, 100)
			require.InEpsilon(t, c.want, rates[99], .03, "%v from %v: %v", c.demands, first, rates)
		}
	}
}

// TestS3_WeightPanics: the panic reaches the caller of Acquire, and takes no slot and no
// lock with it.
func TestS3_WeightPanics(t *testing.T) {
	l := newLimiter(t, gated(1), adaptive.WithFairShares(func(tenant string) float64 {
		if tenant == "bad" {
			panic("no such tenant")
		}
		return 1
	}))
	adaptive.Strain(l)
	for range 3 {
		require.PanicsWithValue(t, "no such tenant", func() { _, _ = l.Acquire(background, "bad", 1) })
	}
	require.Zero(t, l.InFlight())
	for _, key := range []string{"good", ""} {
		lease := acquire(t, l, key, 1)
		require.True(t, lease.Allowed)
		lease.Release(algo.Succeeded)
	}
}

// TestM1_TenantsTakeBoundedMemory: a million names under overload take at most 10 MiB.
func TestM1_TenantsTakeBoundedMemory(t *testing.T) {
	l := newLimiter(t, gated(1000), adaptive.WithFairShares(nil))
	adaptive.Strain(l)
	before := heap()
	n := cases.Count(1_000_000, 1_000_000)
	for i := range n {
		lease := acquire(t, l, strconv.Itoa(i), 1)
		lease.Release(algo.Succeeded)
	}
	const table = 10 << 20 // the states
	require.LessOrEqual(t, heap()-before, int64(table))
	require.Greater(t, adaptive.Used(l), min(300_000, n*9/10))
	require.LessOrEqual(t, adaptive.Used(l), 1024*592) // the slots
	runtime.KeepAlive(l)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestSharesAllocateNothing: but a clock every 100 ms.
func TestSharesAllocateNothing(t *testing.T) {
	l := newLimiter(t, adaptive.Default(), adaptive.WithFairShares(nil), adaptive.WithPriorities())
	adaptive.Strain(l)
	ctx := adaptive.WithClass(background, adaptive.Low)
	require.Zero(t, testing.AllocsPerRun(10_000, func() {
		lease, _ := l.Acquire(ctx, "tenant", 1)
		lease.Release(algo.Succeeded)
	}))
}

// TestClassesBeforeSharesOfSlots: over slots too a lower class is denied first, whosever it
// is: 80 slots at 2.5 times the load, of which one tenant sends five eighths.
func TestClassesBeforeSharesOfSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, work = 80, 50 * time.Millisecond
		l, err := adaptive.New(gated(slots), adaptive.WithPriorities(), adaptive.WithFairShares(nil))
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(1, 2))
		every := work.Seconds() / slots / 2.5
		var all sync.WaitGroup
		classes := []adaptive.Class{adaptive.Critical, adaptive.Normal, adaptive.Sheddable}
		var sent, served [3]atomic.Int64
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
			time.Sleep(time.Duration(rng.ExpFloat64() * every * float64(time.Second)))
			i, tenant := 1, "flood"
			if x := rng.Float64(); x < .15 {
				i = 0
			} else if x < .5 {
				i = 2
			}
			if rng.Float64() > .625 {
				tenant = strconv.Itoa(rng.IntN(4))
			}
			sent[i].Add(1)
			all.Go(func() {
				lease, err := l.Acquire(adaptive.WithClass(t.Context(), classes[i]), tenant, 1)
				if err == nil && lease.Allowed {
					served[i].Add(1)
					time.Sleep(work)
					lease.Release(algo.Succeeded)
				}
			})
		}
		all.Wait()
		require.Greater(t, float64(served[0].Load()), .99*float64(sent[0].Load()))
		share := func(i int) float64 { return float64(served[i].Load()) / float64(sent[i].Load()) }
		require.Less(t, share(2), share(1)/5)
		require.Greater(t, float64(served[0].Load()+served[1].Load()+served[2].Load())*work.Seconds(), .7*20*slots)
	})
}
