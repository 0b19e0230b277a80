package sim

import (
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/wiring"
)

// Strategy is one contestant.
type Strategy struct {
	Name  string
	Meter bool // it reads the use of the processor
	gate  func(w *world) (Gate, error)
}

// None admits every request.
func None() Strategy {
	return Strategy{Name: "none", gate: func(*world) (Gate, error) { return open{}, nil }}
}

// Fixed admits at most n requests at a time.
func Fixed(n int) Strategy {
	return Of("fixed", func(...adaptive.Option) adaptive.Strategy { return adaptive.Fixed(n) })
}

// Queued admits while at most n goroutines are runnable per processor.
func Queued(n int) Strategy {
	return Strategy{Name: "queued", gate: func(w *world) (Gate, error) { return &queued{w, n * w.procs}, nil }}
}

// Trial is the gate of the first measurements in real processes.
func Trial() Strategy {
	return Strategy{Name: "trial", gate: func(w *world) (Gate, error) { return newTrial(w), nil }}
}

// Of is a contestant with a strategy of package adaptive. Each run makes the
// strategy anew, on the machine in opts.
func Of(name string, make func(opts ...adaptive.Option) adaptive.Strategy) Strategy {
	return adapted(name, false, func(_ *world, on adaptive.Option) adaptive.Strategy { return make(on) })
}

// adapted is a contestant whose options depend on the scenario, as the operator of
// the service would set them. The option on runs it on the simulated machine.
func adapted(name string, meter bool, make func(w *world, on adaptive.Option) adaptive.Strategy) Strategy {
	return Strategy{Name: name, Meter: meter, gate: func(w *world) (Gate, error) {
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
			g, err = newLimited(w, gated{s}, opts...)
		}
		return g, err
	}}
}

// gated is a strategy behind a gate that admits every request.
type gated struct{ adaptive.Strategy }

func (gated) Admits(time.Duration) bool { return true }
func (gated) Full() bool                { return false }

func (g gated) Admitted(at time.Duration, n, inFlight int64) {
	if f, ok := g.Strategy.(adaptive.Follower); ok {
		f.Admitted(at, n, inFlight)
	}
}

func (g gated) Finished(at, rtt time.Duration, inFlight int64, o algo.Outcome) {
	if f, ok := g.Strategy.(adaptive.Follower); ok {
		f.Finished(at, rtt, inFlight, o)
	}
}

func (g gated) Denied(at time.Duration, n, inFlight int64, c algo.Cause) {
	if f, ok := g.Strategy.(adaptive.Follower); ok {
		f.Denied(at, n, inFlight, c)
	}
}

// option runs a limiter or a strategy on the simulated machine.
func (w *world) option() adaptive.Option { return wiring.OnMachine(w) }

// Strategies are all strategies of package adaptive, each with its defaults,
// except the settings that its documentation asks the user to choose: a timeout
// or target is the SLO, and the upper limit grows with the cores beyond 4.
func Strategies() []Strategy {
	return []Strategy{
		adapted("Default", true, func(w *world, on adaptive.Option) adaptive.Strategy {
			return adaptive.Default(on, adaptive.WithTarget(w.SLO))
		}),
		adapted("RunQueue", false, func(w *world, on adaptive.Option) adaptive.Strategy {
			return adaptive.RunQueue(on, adaptive.WithTarget(w.SLO))
		}),
		adapted("BBR", true, func(_ *world, on adaptive.Option) adaptive.Strategy { return strategy.BBR(on) }),
		adapted("CompatKratos", true, func(_ *world, on adaptive.Option) adaptive.Strategy {
			return strategy.CompatKratos(on)
		}),
		adapted("Gradient2", false, func(w *world, on adaptive.Option) adaptive.Strategy {
			return strategy.Gradient2(on, adaptive.WithLimits(20, w.scaled(200)))
		}),
		adapted("Vegas", false, func(w *world, on adaptive.Option) adaptive.Strategy {
			return strategy.Vegas(on, adaptive.WithLimits(1, w.scaled(1000)))
		}),
		adapted("AIMD", false, func(w *world, on adaptive.Option) adaptive.Strategy {
			return strategy.AIMD(on, adaptive.WithLimits(20, w.scaled(200)), strategy.WithTimeout(w.SLO))
		}),
	}
}

// scaled is an upper limit that was meant for 4 cores.
func (w *world) scaled(limit int) int { return limit * max(w.Cores, 4) / 4 }

// Optimum searches for the fixed limit with the most goodput: a coarse search in
// steps of a third, then a fine one around the best, on one seed and a load that
// is shortened.
func Optimum(s Scenario) (n int, err error) {
	short := s
	if l := s.Load; len(l) == 3 && s.To-s.From > 20*time.Second {
		short.Load = Load{{10 * time.Second, l[0].From, l[0].To}, {30 * time.Second, l[1].From, l[1].To}}
		short.From, short.To = 10*time.Second, 30*time.Second
	}
	short = short.shorten(100000)
	found := map[int]float64{}
	try := func(n int) float64 {
		if g, ok := found[n]; ok || err != nil {
			return g
		}
		var r Result
		r, err = Run(short, Fixed(n), 99, false)
		found[n] = r.Goodput
		return r.Goodput
	}
	best := s.Cores
	for x := float64(s.Cores); x <= 2*s.bearable(); x *= 1.33 {
		if try(int(x)) > try(best) {
			best = int(x)
		}
	}
	for _, by := range []float64{.8, .9, 1.1, 1.2} {
		if n := max(int(float64(best)*by), 1); try(n) > try(best) {
			best = n
		}
	}
	return best, err
}

// bearable is the number of requests in flight that keep the server busy and take as
// long as the SLO.
func (s *Scenario) bearable() float64 { return max(s.Capacity()*s.SLO.Seconds(), float64(s.Cores)) }
