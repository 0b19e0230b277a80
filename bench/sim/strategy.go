package sim

import (
	"time"

	"github.com/sluice-go/sluice/adaptive"
)

// Strategy is one contestant.
type Strategy struct {
	Name  string
	Meter bool // it reads the use of the processor
	gate  func(w *world) (Gate, error)
}

// None lets everything in.
func None() Strategy {
	return Strategy{Name: "none", gate: func(*world) (Gate, error) { return open{}, nil }}
}

// Fixed lets in n requests at most.
func Fixed(n int) Strategy {
	return Of("fixed", func() (adaptive.Strategy, error) { return adaptive.Fixed(n), nil })
}

// Queued lets in while at most n goroutines are runnable for each processor.
func Queued(n int) Strategy {
	return Strategy{Name: "queued", gate: func(w *world) (Gate, error) { return &queued{w, n * w.procs}, nil }}
}

// Trial is the gate of the first measurements in real processes.
func Trial() Strategy {
	return Strategy{Name: "trial", gate: func(w *world) (Gate, error) { return newTrial(w), nil }}
}

// Of makes a contestant of a strategy of package adaptive, which is made anew
// for each run.
func Of(name string, make func() (adaptive.Strategy, error)) Strategy {
	return Strategy{Name: name, gate: func(w *world) (Gate, error) {
		s, err := make()
		if err != nil {
			return nil, err
		}
		return newLimited(s, w.options()...)
	}}
}

func (w *world) options() []adaptive.Option {
	if w.Priorities {
		return []adaptive.Option{adaptive.WithPriorities()}
	}
	return nil
}

// adapted is a contestant whose options depend on the scenario, as somebody who
// knows the service would set them.
func adapted(name string, meter bool, make func(w *world) (adaptive.Strategy, error)) Strategy {
	return Strategy{Name: name, Meter: meter, gate: func(w *world) (Gate, error) {
		s, err := make(w)
		if err != nil {
			return nil, err
		}
		return newLimited(s, w.options()...)
	}}
}

// Strategies are all that package adaptive has, each with its defaults, but for
// what its documentation asks the user to set: a timeout or target is the SLO,
// which Default cannot be told, and the upper limit grows with the cores beyond 4.
func Strategies() []Strategy {
	return []Strategy{
		adapted("Default", true, func(w *world) (adaptive.Strategy, error) {
			return adaptive.Default(adaptive.WithTarget(w.SLO)), nil
		}),
		adapted("RunQueue", false, func(w *world) (adaptive.Strategy, error) {
			return adaptive.NewRunQueue(adaptive.WithTarget(w.SLO))
		}),
		adapted("BBR", true, func(*world) (adaptive.Strategy, error) { return adaptive.NewBBR() }),
		adapted("CompatKratos", true, func(*world) (adaptive.Strategy, error) { return adaptive.CompatKratos(), nil }),
		adapted("Gradient2", false, func(w *world) (adaptive.Strategy, error) {
			return adaptive.NewGradient2(adaptive.WithLimits(20, w.scaled(200)))
		}),
		adapted("Vegas", false, func(w *world) (adaptive.Strategy, error) {
			return adaptive.NewVegas(adaptive.WithLimits(1, w.scaled(1000)))
		}),
		adapted("AIMD", false, func(w *world) (adaptive.Strategy, error) {
			return adaptive.NewAIMD(adaptive.WithLimits(20, w.scaled(200)), adaptive.WithTimeout(w.SLO))
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

// bearable is how many requests in flight keep the server busy and take as long as
// the SLO.
func (s *Scenario) bearable() float64 { return max(s.Capacity()*s.SLO.Seconds(), float64(s.Cores)) }
