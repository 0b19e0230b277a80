package sim

import (
	"math"
	"time"
)

// Queued admits while at most n goroutines are runnable per processor.
func Queued(n int) Strategy {
	return Strategy{Name: "queued", gate: func(w *world) (Gate, error) { return &queued{w, n * w.procs}, nil }}
}

// Trial is the gate of the first measurements in real processes.
func Trial() Strategy {
	return Strategy{Name: "trial", gate: func(w *world) (Gate, error) { return newTrial(w), nil }}
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
