package sim

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// learner is a strategy, and whether it has limits and a signal.
type learner struct {
	name           string
	make           func(opts ...adaptive.Option) adaptive.Strategy
	limits, signal bool
}

func learners() []learner {
	return []learner{
		{"BBR", strategy.BBR, true, true}, {"Gradient2", strategy.Gradient2, true, false},
		{"Vegas", strategy.Vegas, true, false}, {"AIMD", strategy.AIMD, true, false},
	}
}

// everyStrategy is the learners and the strategies without WithLimits.
func everyStrategy() []learner {
	return append(learners(),
		learner{"Default", adaptive.Default, false, false}, learner{"RunQueue", adaptive.RunQueue, false, false},
		learner{"CompatKratos", strategy.CompatKratos, false, true},
	)
}

// on makes the strategy on a simulated machine, within limits if it has them.
func (l learner) on(w *world, limits ...adaptive.Option) adaptive.Strategy {
	opts := []adaptive.Option{w.option()}
	if l.limits {
		opts = append(opts, limits...)
	}
	if l.signal {
		opts = append(opts, w.usage())
	}
	return l.make(opts...)
}

// harsh is short versions of loads of all kinds.
func harsh() []Scenario {
	all := []Scenario{Classic()[2], Classic()[4], Classic()[5], Classic()[6], Clients()[1]}
	all = append(append(all, Servers()...), Process(3, 5), Process(5, 10))
	for i := range all {
		all[i] = all[i].shorten(30000)
	}
	return all
}

// TestC2_LimitStaysWithin: under every load, the limit stays between the lower and the
// upper bound, and at most the upper bound is in flight.
func TestC2_LimitStaysWithin(t *testing.T) {
	const low, high = 7, 60
	all := len(everyStrategy()) * len(harsh())
	every, n := all/cases.Count(all, all), 0 // under the race detector one in ten
	for _, l := range everyStrategy() {
		for _, sc := range harsh() {
			if n++; n%every != 0 {
				continue
			}
			var limits, flying []int
			by := Strategy{Name: l.name, gate: func(w *world) (Gate, error) {
				bounds := adaptive.WithLimits(low, high)
				g, err := newLimited(w, l.on(w, bounds), bounds)
				return &watched{g, &limits, &flying}, err
			}}
			_, err := Run(sc, by, 1)
			require.NoError(t, err)
			require.GreaterOrEqual(t, slices.Min(limits), low, "%s %s", l.name, sc.ID)
			require.LessOrEqual(t, slices.Max(limits), high, "%s %s", l.name, sc.ID)
			require.LessOrEqual(t, slices.Max(flying), high, "%s %s", l.name, sc.ID)
			require.Positive(t, slices.Max(flying))
		}
	}
}

// watched records the limit and the requests in flight at each request.
type watched struct {
	*limited
	limits, flying *[]int
}

func (g *watched) enter(r *request) bool {
	ok := g.limited.enter(r)
	*g.limits = append(*g.limits, g.limiter.Limit())
	*g.flying = append(*g.flying, g.limiter.InFlight())
	return ok
}

// TestC2_OnlyWorkTeaches: the limit moves as it does without them if every
// request is accompanied by a stream, a cancellation and a fast failure. AIMD's falls with failures.
func TestC2_OnlyWorkTeaches(t *testing.T) {
	for _, l := range learners() {
		if l.name == "Vegas" {
			continue // probes at random moments; see TestC2_OnlyWorkIsObserved
		}
		for _, sc := range []Scenario{Classic()[0], Classic()[4]} {
			sc.Load, sc.From, sc.To = Load{{12 * sec, .5, .5}, {20 * sec, 3, 3}, {24 * sec, .5, .5}}, 12*sec, 20*sec
			run := func(others ...algo.Outcome) Result {
				by := Strategy{Name: l.name, gate: func(w *world) (Gate, error) {
					g, err := newLimited(w, l.on(w))
					return &accompanied{g, others}, err
				}}
				r, err := Run(sc, by, 1)
				require.NoError(t, err)
				return r
			}
			alone := run()
			require.Greater(t, len(slices.Compact(slices.Clone(alone.Limits))), 3, "%s learns", l.name)
			others := []algo.Outcome{algo.Succeeded | algo.Untimed, algo.Canceled}
			if l.name == "AIMD" {
				failing := run(algo.Failed).Limits
				require.LessOrEqual(t, slices.Max(failing), slices.Max(alone.Limits))
				require.NotEqual(t, alone.Limits, failing)
			} else {
				others = append(others, algo.Failed)
			}
			require.Equal(t, alone.Limits, run(others...).Limits, l.name)
			require.NotEqual(t, alone.Limits, run(algo.Succeeded).Limits, "a success teaches")
		}
	}
}

// accompanied admits and releases other work at once before each release, if there is
// room.
type accompanied struct {
	*limited
	others []algo.Outcome
}

func (g *accompanied) leave(r *request, late bool) {
	for _, o := range g.others {
		if g.limiter.InFlight() < g.limiter.Limit() {
			lease, _ := g.limiter.Acquire(g.classes[0], "", 1)
			lease.Release(o)
		}
	}
	g.limited.leave(r, late)
}

// TestC2_OnlyWorkIsObserved: no other outcome reaches Observe.
func TestC2_OnlyWorkIsObserved(t *testing.T) {
	heard := &counter{}
	by := Strategy{Name: "counter", gate: func(w *world) (Gate, error) {
		g, err := newLimited(w, heard)
		return &accompanied{g, []algo.Outcome{algo.Succeeded | algo.Untimed, algo.Canceled, algo.Failed}}, err
	}}
	w, err := play(Clients()[2].shorten(30000), by, 1)
	require.NoError(t, err)
	done := w.stats.sum(0, w.Load.End()).done
	require.Positive(t, heard.n)
	require.LessOrEqual(t, heard.n, done)
	require.Zero(t, heard.failed)
}

type counter struct{ n, failed int }

func (c *counter) Limit() int { return 1000 }

func (c *counter) Observe(s adaptive.Sample) {
	c.n++
	if s.Outcome != algo.Succeeded {
		c.failed++
	}
}

// TestC2_FailedSignalFallsBack: a strategy whose signal fails in the middle of an
// overload raises its limit, and another one in the same Min keeps its limit.
func TestC2_FailedSignalFallsBack(t *testing.T) {
	sc := Classic()[1].shorten(60000)
	run := func(fails bool, others ...adaptive.Strategy) Result {
		by := Strategy{Name: "BBR", gate: func(w *world) (Gate, error) {
			bbr := strategy.BBR(w.option(), strategy.WithSignal(signal.Func(func() (float64, bool) {
				return 1.2, !fails || w.now < int64(sc.From+2*sec)
			})))
			return newLimited(w, adaptive.Min(append(others, bbr)...))
		}}
		r, err := Run(sc, by, 1)
		require.NoError(t, err)
		return r
	}
	require.Greater(t, run(false).Goodput, .95, "with the signal")
	require.Less(t, run(true).Goodput, .5, "without it there is no limit")
	require.Greater(t, run(true, adaptive.Fixed(20)).Goodput, .95, "the other one holds")
}

// TestC2_Blind: while the number of runnable goroutines is unknown, RunQueue admits
// everything, and another strategy in the same Min keeps its limit.
func TestC2_Blind(t *testing.T) {
	sc := Classic()[1].shorten(60000)
	run := func(blind bool, others ...adaptive.Strategy) float64 {
		sc.Blind = blind
		r, err := Run(sc, Of("RunQueue", func(opts ...adaptive.Option) adaptive.Strategy {
			q := adaptive.RunQueue(append(opts, adaptive.WithTarget(sc.SLO))...)
			return adaptive.Min(append(others, q)...)
		}), 1)
		require.NoError(t, err)
		return r.Goodput
	}
	require.Greater(t, run(false), .95)
	require.Less(t, run(true), .1)
	require.Greater(t, run(true, adaptive.Fixed(20)), .95)
}
