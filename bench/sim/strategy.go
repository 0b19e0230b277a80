package sim

import (
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/internal/wiring"
)

// Strategy is one contestant.
type Strategy struct {
	Name string
	gate func(w *world) (Gate, error)
}

// None admits every request.
func None() Strategy {
	return Strategy{Name: "none", gate: func(*world) (Gate, error) { return open{}, nil }}
}

// Fixed admits at most n requests at a time.
func Fixed(n int) Strategy {
	return Of("fixed", func(...adaptive.Option) adaptive.Strategy { return adaptive.Fixed(n) })
}

// Of is a contestant with a strategy of package adaptive. Each run makes the
// strategy anew, on the machine in opts.
func Of(name string, make func(opts ...adaptive.Option) adaptive.Strategy) Strategy {
	return adapted(name, func(_ *world, on adaptive.Option) adaptive.Strategy { return make(on) })
}

// adapted is a contestant whose options depend on the scenario, as the operator of
// the service would set them. The option on runs it on the simulated machine.
func adapted(name string, make func(w *world, on adaptive.Option) adaptive.Strategy) Strategy {
	return Strategy{Name: name, gate: func(w *world) (Gate, error) {
		var opts []adaptive.Option
		if w.Priorities {
			opts = append(opts, adaptive.WithPriorities())
		}
		if w.Fair {
			opts = append(opts, adaptive.WithFairShares(w.weightOf))
		}
		s := make(w, w.option())
		g, err := newLimited(w, s, opts...)
		if err != nil && opts != nil { // requests cannot wait here for slots alone
			g, err = newLimited(w, gated{adaptive.Min(s).(adaptive.Follower)}, opts...)
		}
		return g, err
	}}
}

// gated is a strategy behind a gate that admits every request.
type gated struct{ adaptive.Follower }

func (gated) Admits(time.Duration) bool { return true }
func (gated) Full() bool                { return false }

// option runs a limiter or a strategy on the simulated machine.
func (w *world) option() adaptive.Option { return wiring.OnMachine(w) }

// Strategies are all strategies of package adaptive, each with its defaults,
// except the settings that its documentation asks the user to choose: a timeout
// or target is the SLO, and the upper limit grows with the cores beyond 4.
func Strategies() []Strategy {
	return []Strategy{
		adapted("Default", func(w *world, on adaptive.Option) adaptive.Strategy {
			return adaptive.Default(on, adaptive.WithTarget(w.SLO))
		}),
		adapted("RunQueue", func(w *world, on adaptive.Option) adaptive.Strategy {
			return adaptive.RunQueue(on, adaptive.WithTarget(w.SLO))
		}),
		adapted("BBR", func(w *world, on adaptive.Option) adaptive.Strategy { return strategy.BBR(on, w.usage()) }),
		adapted("CompatKratos", func(w *world, on adaptive.Option) adaptive.Strategy {
			return strategy.CompatKratos(on, w.usage())
		}),
		adapted("Gradient2", func(w *world, on adaptive.Option) adaptive.Strategy {
			return strategy.Gradient2(on, adaptive.WithLimits(20, w.scaled(200)))
		}),
		adapted("Vegas", func(w *world, on adaptive.Option) adaptive.Strategy {
			return strategy.Vegas(on, adaptive.WithLimits(1, w.scaled(1000)))
		}),
		adapted("AIMD", func(w *world, on adaptive.Option) adaptive.Strategy {
			return strategy.AIMD(on, adaptive.WithLimits(20, w.scaled(200)), strategy.WithTimeout(w.SLO))
		}),
	}
}

// scaled is an upper limit that was meant for 4 cores.
func (w *world) scaled(limit int) int { return limit * max(w.Cores, 4) / 4 }
