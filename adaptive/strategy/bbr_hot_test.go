package strategy_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
)

// flow sends a request each millisecond for d, each of which takes work, and returns the denied share.
func flow(t *testing.T, l *adaptive.Limiter, work, d time.Duration) float64 {
	denied := 0
	for range d / time.Millisecond {
		time.Sleep(time.Millisecond)
		lease := acquire(t, l, "", 1)
		if !lease.Allowed {
			denied++
			continue
		}
		time.AfterFunc(work, func() { lease.Release(algo.Succeeded) })
	}
	return float64(denied) / float64(d/time.Millisecond)
}

// TestBBRStartedHot: the signal is hot from the start on, because of a busy neighbor, and nothing is
// slow. It denies only until it has found the limit.
func TestBBRStartedHot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cpu := new(dial)
		cpu.set(1.3)
		l := newLimiter(t, strategy.BBR(strategy.WithSignal(cpu)))
		first := flow(t, l, 100*time.Millisecond, 15*time.Second)
		rest := flow(t, l, 100*time.Millisecond, 10*time.Minute-15*time.Second)
		require.Less(t, first, .2)
		require.Less(t, rest, .003)
		require.Less(t, l.Limit(), 200)
		require.True(t, l.Explain().Strategies[0].Overloaded)
	})
}

// TestBBRSlowerWhileHot: the work becomes slower for good while the signal is hot. The old baseline takes
// the limit down to its minimum, where the new one is learned.
func TestBBRSlowerWhileHot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cpu := new(dial)
		l := newLimiter(t, strategy.BBR(strategy.WithSignal(cpu)))
		require.Zero(t, flow(t, l, 20*time.Millisecond, 30*time.Second))
		cpu.set(1.3)
		require.Less(t, flow(t, l, 20*time.Millisecond, 5*time.Second), .1)
		flow(t, l, 100*time.Millisecond, 30*time.Second)
		require.Less(t, flow(t, l, 100*time.Millisecond, time.Minute), .01)
		require.Less(t, l.Limit(), 200)
	})
}

// TestBBRHotByItsOwnWork: a resource serves 200 a second in order, 1000 arrive, and the signal is hot from
// the start on. What is learned at the minimum does not let the queue grow.
func TestBBRHotByItsOwnWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cpu := new(dial)
		cpu.set(1.3)
		l := newLimiter(t, strategy.BBR(strategy.WithSignal(cpu)))
		free, served := time.Now(), 0
		for range 5 * 60_000 {
			time.Sleep(time.Millisecond)
			lease := acquire(t, l, "", 1)
			if !lease.Allowed {
				continue
			}
			served++
			if now := time.Now(); free.Before(now) {
				free = now
			}
			free = free.Add(5 * time.Millisecond)
			time.AfterFunc(time.Until(free), func() { lease.Release(algo.Succeeded) })
		}
		require.Greater(t, served, 5*60*200*9/10)
		require.LessOrEqual(t, l.Limit(), 50)
	})
}

// TestBBRExplainsItsEstimate: what it knows, and that it knows nothing yet.
func TestBBRExplainsItsEstimate(t *testing.T) {
	for name, s := range map[string]func(...adaptive.Option) adaptive.Strategy{"bbr": strategy.BBR, "kratos": strategy.CompatKratos} {
		synctest.Test(t, func(t *testing.T) {
			cpu := new(dial)
			l := newLimiter(t, s(strategy.WithSignal(cpu), strategy.WithWindow(5*time.Second, 50)))
			require.Equal(t, &adaptive.Estimate{}, l.Explain().Strategies[0].Estimate, name)
			require.Contains(t, l.Explain().String(), "no estimate yet", name)
			cpu.set(.5)
			require.Zero(t, flow(t, l, 20*time.Millisecond, 30*time.Second))
			e := l.Explain().Strategies[0].Estimate
			require.InDelta(t, 100, e.MaxPass, 2, name)
			require.Equal(t, 20*time.Millisecond, e.MinRT, name)
			require.InDelta(t, 4900, e.Samples, 101, "%s: the windows of 5 s, but the present bucket", name)
			require.Zero(t, e.LastDrop, name)
			cpu.set(2)
			flow(t, l, 200*time.Millisecond, 30*time.Second)
			cpu.set(0)
			flow(t, l, 20*time.Millisecond, 30*time.Second)
			last := l.Explain().Strategies[0].Estimate.LastDrop
			require.Greater(t, last, 20*time.Second, name)
			require.Less(t, last, time.Minute, name)
			require.Contains(t, l.Explain().String(), "minRT 20ms", name)
			require.Contains(t, l.Explain().String(), "last drop", name)
		})
	}
}

// TestKratosWindow: the original's options for it.
func TestKratosWindow(t *testing.T) {
	for want, o := range map[string]adaptive.Option{
		"buckets is 1": strategy.WithWindow(time.Second, 1), "a bucket of 3s in 2 is longer than 1s": strategy.WithWindow(3*time.Second, 2),
	} {
		_, err := adaptive.New(strategy.CompatKratos(o))
		require.ErrorContains(t, err, want)
	}
}
