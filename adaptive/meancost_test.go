package adaptive_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// TestDefaultWithMixedCosts: one in ten requests costs ten times as much and takes ten times
// as long.
func TestDefaultWithMixedCosts(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Default(m.option()))
	r := newRemote(20, 0)
	var from, served time.Duration
	r.draw = func() time.Duration {
		d := 10 * time.Millisecond * time.Duration(r.cost)
		if from > 0 && m.at >= from {
			served += d
		}
		return d
	}
	i := 0
	r.gap = func() float64 {
		r.cost = 1
		if i++; i%10 == 0 {
			r.cost = 10
		}
		return 1
	}
	r.gap()
	const capacity = 20 / .019 // of work of 19 ms on average
	require.Zero(t, denied(r.play(t, m, l, .8*capacity, 20*time.Second), 0))
	from = m.at + 5*time.Second
	r.play(t, m, l, 3*capacity, 20*time.Second)
	require.Greater(t, served.Seconds()/15/20, .9)
}

// TestBBRWithCosts: the estimate is of requests, the limit is in units.
func TestBBRWithCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cpu := new(dial)
		l := newLimiter(t, newBBR(t, adaptive.WithSignal(cpu)))
		leases := make([]algo.Lease, 50)
		run := func(d time.Duration) {
			for i := range d / time.Millisecond {
				time.Sleep(time.Millisecond)
				at := int(i) % len(leases)
				leases[at].Release(algo.Succeeded)
				leases[at] = acquire(t, l, "", 10)
			}
		}
		run(20 * time.Second)
		cpu.set(2)
		run(time.Second)
		require.InDelta(t, 630, l.Limit(), 40)
		releaseAll(leases, algo.Ignored)
	})
}

// TestAFewCostlyRequestsHang: ten requests that hang are no overload, whatever they cost; the
// 20th is, and then one is admitted each second, at its cost.
func TestAFewCostlyRequestsHang(t *testing.T) {
	for name, s := range map[string]func() adaptive.Strategy{
		"default": func() adaptive.Strategy { return adaptive.Default() },
		"bbr":     func() adaptive.Strategy { return newBBR(t, adaptive.WithSignal(new(dial))) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, s())
				for range 3000 {
					lease := acquire(t, l, "", 50)
					time.Sleep(time.Millisecond)
					lease.Release(algo.Succeeded)
				}
				var hung []algo.Lease
				for range 10 {
					hung = append(hung, acquire(t, l, "", 50))
					require.True(t, hung[len(hung)-1].Allowed)
					time.Sleep(time.Second)
				}
				for range 100 {
					hung = append(hung, acquire(t, l, "", 50))
					time.Sleep(100 * time.Millisecond)
				}
				admitted := 0
				for i := range hung {
					if hung[i].Allowed {
						admitted++
					}
				}
				require.InDelta(t, 35, admitted, 12)
				releaseAll(hung, algo.Canceled)
			})
		})
	}
}
