package pools

import (
	"context"
	"reflect"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/bench/peers"
	"github.com/sluice-go/sluice/internal/wiring"
)

// gate decides on requests. It returns the release of an admitted one, nil if it denies.
type gate interface {
	enter(*request) func(algo.Outcome)
	// gone is enter for a request whose context has ended.
	gone()
}

// Limiter is a contestant.
type Limiter struct {
	Name string
	// Bubble: it reads the real clock, and so runs in a testing/synctest bubble.
	Bubble bool
	make   func(w *world) (gate, error)
}

// Limiters are the contestants.
func Limiters() []Limiter {
	of := func(name string, strategy func(w *world, on adaptive.Option) adaptive.Strategy) Limiter {
		return Limiter{Name: name, make: func(w *world) (gate, error) {
			on := wiring.OnMachine(w)
			s := strategy(w, on)
			w.fuzz = func() { fuzz(w, reflect.ValueOf(s)) }
			l, err := adaptive.New(s, append(w.Options, on)...)
			return &limited{l}, err
		}}
	}
	return []Limiter{
		{Name: "none", make: func(*world) (gate, error) { return open{}, nil }},
		of("Default", func(w *world, on adaptive.Option) adaptive.Strategy {
			return adaptive.Default(on, adaptive.WithTarget(max(w.Target, w.SLO)))
		}),
		of("Vegas", func(_ *world, on adaptive.Option) adaptive.Strategy { return strategy.Vegas(on) }),
		of("Gradient2", func(_ *world, on adaptive.Option) adaptive.Strategy { return strategy.Gradient2(on) }),
		{Name: "failsafe-go", Bubble: true, make: func(*world) (gate, error) {
			return foreign(peers.Failsafe(0)), nil
		}},
	}
}

type open struct{}

func (open) gone()    {}
func (foreign) gone() {}

func (l *limited) gone() { _, _ = l.Acquire(ended, "", 1) }

var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func (open) enter(*request) func(algo.Outcome) { return func(algo.Outcome) {} }

type limited struct{ *adaptive.Limiter }

func (l *limited) enter(r *request) func(algo.Outcome) {
	lease, err := l.Acquire(adaptive.WithClass(context.Background(), r.class), r.tenant, 1)
	if err != nil {
		panic(err)
	}
	if !lease.Allowed {
		return nil
	}
	return lease.Release
}

type foreign peers.Gate

func (f foreign) enter(*request) func(algo.Outcome) {
	leave := f.Enter()
	if leave == nil {
		return nil
	}
	return func(o algo.Outcome) { leave(o == algo.Failed|algo.Untimed) }
}
