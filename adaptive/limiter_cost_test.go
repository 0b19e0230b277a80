package adaptive_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
)

// TestCostsOfRequests: strategies that learn from requests decide the same whatever the
// requests cost and to whatever they are settled, also while some wait for their clients: in
// calm times, in an overload, and while nothing completes.
func TestCostsOfRequests(t *testing.T) {
	for name, opts := range map[string][]adaptive.Option{
		"at once":    nil,
		"priorities": {adaptive.WithPriorities()},
		"shares":     {adaptive.WithFairShares(nil)},
		"limits":     {adaptive.WithLimits(3, 30)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range []string{"default", "run queue", "bbr", "kratos", "min"} {
				one := decisions(t, s, opts, func(*rand.Rand) (n, actual int64) { return 1, 1 })
				require.Contains(t, one, byte('0'), "nothing is denied")
				require.Contains(t, one, byte('1'))
				many := decisions(t, s, opts, func(r *rand.Rand) (n, actual int64) {
					return 1 + r.Int64N(1<<r.IntN(40)), 1 + r.Int64N(1<<r.IntN(40))
				})
				if name == "shares" { // the hash of a tenant differs in each limiter
					require.InEpsilon(t, bytes.Count(one, []byte{'1'}), bytes.Count(many, []byte{'1'}), .05, s)
					continue
				}
				require.Equal(t, one, many, s)
			}
		})
	}
}

// decisions is a digit for each request to a dependency with 20 workers.
func decisions(t *testing.T, name string, opts []adaptive.Option, cost func(*rand.Rand) (n, actual int64)) (all []byte) {
	m := newModel()
	hot := new(dial)
	strategies := map[string]func() adaptive.Strategy{
		"default":   func() adaptive.Strategy { return adaptive.Default(m.option()) },
		"run queue": func() adaptive.Strategy { return adaptive.RunQueue(m.option()) },
		"bbr":       func() adaptive.Strategy { return strategy.BBR(strategy.WithSignal(hot), m.option()) },
		"kratos":    func() adaptive.Strategy { return strategy.CompatKratos(strategy.WithSignal(hot), m.option()) },
		"min": func() adaptive.Strategy {
			return adaptive.Min(strategy.BBR(strategy.WithSignal(hot), m.option()), adaptive.Default(m.option()))
		},
	}
	s := strategies[name]()
	if name == "bbr" || name == "kratos" { // priorities need a gate
		s = adaptive.Min(open{unlimited}, s)
	}
	l := m.limiter(t, s, opts...)
	r, costs := newRemote(20, 10*time.Millisecond), rand.New(rand.NewPCG(1, 2))
	chance := rand.New(rand.NewPCG(3, 4))
	for _, part := range []struct {
		load     float64
		level    float64
		runnable int
		service  time.Duration
	}{
		{.8, 0, 0, 10 * time.Millisecond},
		{3, 20, 200, 10 * time.Millisecond},
		{.8, 0, 0, 10 * time.Millisecond},
		{.1, 0, 0, time.Hour}, // a hang
	} {
		hot.set(part.level)
		m.runnable, m.goroutines, r.service = part.runnable, 5000, part.service
		every := time.Duration(float64(500*time.Microsecond) / part.load)
		for end := m.at + 5*time.Second; m.at < end; m.at += every {
			r.finish(m)
			m.used += every * 9 / 10
			n, actual := cost(costs)
			waits := chance.IntN(50) == 0
			lease := acquire(t, l, "a", n)
			all = append(all, '0')
			if lease.Allowed {
				all[len(all)-1] = '1'
				lease.Settle(actual)
				if waits {
					lease.AwaitClient(true)
				}
				ends := max(r.free[0], m.at) + r.takes()
				r.occupy(ends)
				r.fly(call{ends, m.at, lease})
			}
		}
	}
	for _, c := range r.flying {
		c.lease.Release(algo.Succeeded)
	}
	require.Zero(t, l.InFlight())
	return all
}

// TestCostAboveTheLimit: a request whose cost exceeds the present limit of a learner enters while nothing
// else is in flight, so that the limit may learn to rise.
func TestCostAboveTheLimit(t *testing.T) {
	for name, s := range map[string]func() adaptive.Strategy{
		"AIMD": func() adaptive.Strategy { return strategy.AIMD() }, "Vegas": func() adaptive.Strategy { return strategy.Vegas() },
		"Gradient2": func() adaptive.Strategy { return strategy.Gradient2() },
		"Min":       func() adaptive.Strategy { return adaptive.Min(adaptive.Default(), strategy.Gradient2()) },
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, s()) // 20
			before := acquire(t, l, "", 1)
			require.False(t, acquire(t, l, "", 25).Allowed, "%s: not beside others", name)
			before.AwaitClient(true)
			require.True(t, acquire(t, l, "", 25).Allowed, "%s: what waits for its client is nothing else", name)

			l = newLimiter(t, s())
			for range 281 {
				large := acquire(t, l, "", 25)
				require.True(t, large.Allowed, name)
				time.Sleep(10 * time.Millisecond)
				large.Release(algo.Succeeded)
				time.Sleep(10 * time.Millisecond)
			}
			require.GreaterOrEqual(t, l.Limit(), 25, name)
		})
	}
}

// TestCostAboveTheLimitInAQueue: such a request waits until it is alone, in its turn.
func TestCostAboveTheLimitInAQueue(t *testing.T) {
	for _, q := range []adaptive.Queue{adaptive.FIFO(100, time.Second), adaptive.CoDel(100, time.Second, time.Second)} {
		synctest.Test(t, func(t *testing.T) {
			v := queued(t, strategy.AIMD(), q) // 20 of at most 200
			for id, cost := range []int64{10, 100, 20} {
				v.send(background, id, cost)
			}
			require.Equal(t, []int{0}, v.ids())
			v.leave(0)
			require.Equal(t, []int{0, 1}, v.ids())
			v.leave(1)
			require.Equal(t, []int{0, 1, 2}, v.ids())
			v.leave(2)
			require.Zero(t, v.l.InFlight())
		})
	}
}

// TestPrioritiesWithCosts: slots are kept for Critical requests as well if each takes many.
func TestPrioritiesWithCosts(t *testing.T) {
	for _, cost := range []int64{1, 100, 10_000} {
		m, chance := newModel(), rand.New(rand.NewPCG(1, 2))
		l := m.limiter(t, gated(40*cost), adaptive.WithPriorities())
		r := newRemote(1000, 20*time.Millisecond) // 2000 a second fit
		critical, denied := 0, 0
		for m.at < 60*time.Second {
			m.at += time.Duration(chance.ExpFloat64() * float64(time.Second) / 3000)
			r.finish(m)
			class := adaptive.Sheddable
			if chance.IntN(3) == 0 {
				class = adaptive.Critical
			}
			lease, err := l.Acquire(adaptive.WithClass(background, class), "", cost)
			if err != nil { // require takes longer than the limiter
				t.Fatal(err)
			}
			if class == adaptive.Critical {
				critical++
				if !lease.Allowed {
					denied++
				}
			}
			if lease.Allowed {
				r.fly(call{m.at + r.service, m.at, lease})
			}
		}
		require.Less(t, float64(denied)/float64(critical), .01, "cost %d", cost)
	}
}

// TestProbeOfCostlyRequests: beside a strategy that counts units a probe has room for what is
// denied, so that a hang of requests that cost 1 ends where all others cost more.
func TestProbeOfCostlyRequests(t *testing.T) {
	for name, s := range map[string]func() adaptive.Strategy{
		"default": func() adaptive.Strategy { return adaptive.Default() },
		"bbr":     func() adaptive.Strategy { return newBBR(new(dial)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, adaptive.Min(s(), adaptive.Fixed(100_000)))
				for range 3000 {
					lease := acquire(t, l, "", 1)
					time.Sleep(time.Millisecond)
					lease.Release(algo.Succeeded)
				}
				for range 3000 { // these hang for ever
					_ = acquire(t, l, "", 1)
					time.Sleep(time.Millisecond)
				}
				served := 0
				for range 600 {
					lease := acquire(t, l, "", 10)
					time.Sleep(time.Millisecond)
					lease.Release(algo.Succeeded)
					time.Sleep(99 * time.Millisecond)
					if lease.Allowed {
						served++
					}
				}
				require.Greater(t, served, 550)
			})
		})
	}
}
