package sim

import (
	"context"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// Gate admits and rejects requests in front of the server.
type Gate interface {
	enter(r *request) bool
	// leave follows the end of an admitted request; late means that the client
	// had given up.
	leave(r *request, late bool)
	// limit is the current limit, in the unit of the gate; 0: no limit.
	limit() int
}

// open admits every request.
type open struct{}

func (open) enter(*request) bool  { return true }
func (open) leave(*request, bool) {}
func (open) limit() int           { return 0 }

// limited is a limiter of package adaptive.
type limited struct {
	limiter *adaptive.Limiter
	classes [len(classShares)]context.Context
}

func newLimited(w *world, s adaptive.Strategy, opts ...adaptive.Option) (*limited, error) {
	l, err := adaptive.New(s, append(opts, w.option())...)
	if err != nil {
		return nil, err
	}
	g := &limited{limiter: l}
	for i := range g.classes {
		g.classes[i] = adaptive.WithClass(context.Background(), adaptive.Class(i))
	}
	return g, nil
}

func (g *limited) enter(r *request) bool {
	// Acquire fails for misuse only, which this is not.
	r.held, _ = g.limiter.Acquire(g.classes[r.class], r.name, 1)
	return r.held.Allowed
}

// leave releases as the adapters do: a request whose client is gone has a canceled
// context, and is no sample.
func (g *limited) leave(r *request, late bool) {
	outcome := algo.Succeeded
	if late {
		outcome = algo.Succeeded | algo.Untimed
	}
	r.held.Release(outcome)
}

func (g *limited) limit() int { return g.limiter.Limit() }
