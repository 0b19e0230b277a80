package sim

import (
	"context"
	"math"
	"time"

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
	spare   []*algo.Lease // of requests that are over
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
	lease, _ := g.limiter.Acquire(g.classes[r.class], r.name, 1)
	if !lease.Allowed {
		return false
	}
	if n := len(g.spare); n > 0 {
		r.held, g.spare = g.spare[n-1], g.spare[:n-1]
	} else {
		r.held = new(algo.Lease)
	}
	*r.held = lease
	return true
}

// leave releases as the adapters do: a request whose client is gone has a canceled
// context, and is no sample.
func (g *limited) leave(r *request, late bool) {
	outcome := algo.Succeeded
	if late {
		outcome = algo.Succeeded | algo.Untimed
	}
	r.held.Release(outcome)
	g.spare = append(g.spare, r.held)
}

func (g *limited) limit() int {
	return g.limiter.Limit()
}

// queued rejects while more than a fixed number of goroutines per processor are
// runnable: the simplest gate that sees the queue of a Go server.
type queued struct {
	w    *world
	most int
}

func (g *queued) enter(*request) bool  { return g.w.server.runnable() <= g.most }
func (g *queued) leave(*request, bool) {}
func (g *queued) limit() int           { return g.most }

// trial is the gate of the first measurements in real processes: wide while nearly
// every request is admitted, so that a harmless burst passes, and 4 runnable
// goroutines per processor during overload.
type trial struct {
	w                 *world
	most              float64
	share             float64 // of the arrivals that are admitted, smoothed
	each              float64 // processor time of a request, smoothed, seconds
	arrived, admitted int
	completed         int
	at, used          int64
}

const (
	trialEvery  = int64(50 * time.Millisecond)
	trialReject = 15e-6 // assumed cost of a rejection, in seconds
	trialLow    = 4
)

func newTrial(w *world) *trial {
	return &trial{w: w, share: 1, most: float64(w.procs) * 64}
}

func (g *trial) enter(*request) bool {
	g.arrived++
	if dt := g.w.now - g.at; dt >= trialEvery && (g.arrived >= 10 || dt >= int64(time.Second)) {
		g.turn(float64(dt) / 1e9)
	}
	if float64(g.w.server.runnable()) > g.most {
		return false
	}
	g.admitted++
	return true
}

func (g *trial) turn(dt float64) {
	used := g.w.server.cpu()
	if g.completed > 0 {
		busy := float64(used-g.used)/1e9 - trialReject*float64(g.arrived-g.admitted)
		each := max(busy/float64(g.completed), 1e-6)
		if g.each == 0 {
			g.each = each
		}
		g.each += ease(dt, 1) * (each - g.each)
	}
	rate := float64(g.arrived) / dt
	tau := min(.6, .4+100*g.each) + 10/rate
	g.share += ease(dt, tau) * (float64(g.admitted)/float64(g.arrived) - g.share)
	high := 64.0
	if g.each > 0 {
		high = min(max(g.w.SLO.Seconds()/3/g.each, 10), 64)
	}
	wide := min(max((g.share-.6)/.2, 0), 1)
	g.most = float64(g.w.procs) * (trialLow + (high-trialLow)*wide)
	g.at, g.used = g.w.now, used
	g.arrived, g.admitted, g.completed = 0, 0, 0
}

func (g *trial) leave(*request, bool) { g.completed++ }
func (g *trial) limit() int           { return int(g.most) }

// ease is how far an exponential mean moves in dt.
func ease(dt, tau float64) float64 { return 1 - math.Exp(-dt/tau) }
