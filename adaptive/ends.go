package adaptive

import (
	"math"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/window"
)

// counts is what happened to requests in some time.
type counts struct {
	began, turned float64 // arrivals with a slot, and without one
	ended         float64 // of any kind
	good, took    float64 // successes, and the sum of their times, ns
	fresh, lasted float64 // of those that began within the limit in force
}

func (c *counts) add(o counts) {
	c.began, c.turned, c.ended = c.began+o.began, c.turned+o.turned, c.ended+o.ended
	c.good, c.took, c.fresh, c.lasted = c.good+o.good, c.took+o.took, c.fresh+o.fresh, c.lasted+o.lasted
}

// counters are counts since they were last drained. Every request writes them.
type counters struct {
	began, turned, ended, good, took, fresh, lasted atomic.Int64
}

func (c *counters) drain() counts {
	f := func(n *atomic.Int64) float64 { return float64(n.Swap(0)) }
	return counts{f(&c.began), f(&c.turned), f(&c.ended), f(&c.good), f(&c.took), f(&c.fresh), f(&c.lasted)}
}

// standingSpan is the time after which work in flight is standing work, such as a long poll.
const standingSpan = window.LowestSpan

// Constants of the rate of ends and of the usual time.
const (
	rateEnds     = 20             // ends that make a rate
	rateMemory   = 0.1            // s, of the rate of ends
	slowMemory   = 1.0            // s, of the slow one
	usualFirst   = 5              // successes that make the usual time
	usualSpan    = int64(1e8)     // ns, in which they are taken together
	usualLongest = 20 * usualSpan // while fewer than rateEnds ended
	usualDown    = 2.0            // s, memory of a shorter time
	usualUp      = 5.0            // s, of a longer one
	usualKnown   = 100            // successes of a plain mean
	usualMost    = 1.15           // usual times that the last few ends take while nothing waits: 4 x 50ms 10x
	usualNear    = 1.3            // usual times: nothing piles up
	lastEnds     = 8              // the last few ends: 4 x 50ms 10x
)

// pace is how work ends: how fast, and after which time as a rule.
type pace struct {
	rate, slow float64 // ends per second, over rateMemory and over slowMemory
	good       float64 // successes per second, over rateMemory
	usual      float64 // mean time of successes without a queue, s; 0: unknown
	known      float64 // successes so far
	last       counts  // the last few ends
	window     counts  // of usual, from an instant:
	from       int64
	updated    int64

	typical atomic.Int64 // usual, ns
}

// end takes in the end of work that began at-rtt. Work of standingSpan or more is standing work.
func (p *pace) end(c *counters, at, rtt, since int64, o algo.Outcome) {
	if rtt > standingSpan {
		return
	}
	c.ended.Add(1)
	usual := p.typical.Load()
	switch {
	case o.Result() != algo.Succeeded, !o.Timed() && usual == 0:
		return
	case !o.Timed(): // a stream, or a slow client: its time says nothing
		c.good.Add(1)
		c.took.Add(usual)
		return
	}
	fresh := at-rtt >= since
	c.good.Add(1)
	c.took.Add(rtt)
	if fresh {
		c.fresh.Add(1)
		c.lasted.Add(rtt)
	}
}

// update takes in the time until at. free: nothing is limited; learns: a limit did harm just now;
// takes: how long new work would take, s.
func (p *pace) update(at int64, c counts, target float64, free, learns bool, takes float64) {
	calm := free && takes <= goalTarget*target
	dt := float64(max(at-p.updated, 1)) / 1e9
	p.updated = at
	memory := min(max(rateEnds/max(p.rate, 1e-9), rateMemory), max(3*rateMemory, p.usual))
	p.rate += (1 - math.Exp(-dt/memory)) * (c.ended/dt - p.rate)
	p.good += (1 - math.Exp(-dt/memory)) * (c.good/dt - p.good)
	p.slow += (1 - math.Exp(-dt/slowMemory)) * (c.ended/dt - p.slow)
	p.known += c.good
	keep := math.Exp(-c.ended / lastEnds)
	p.last = counts{ended: keep*p.last.ended + c.ended, good: keep*p.last.good + c.good, took: keep*p.last.took + c.took}
	p.window.add(c)
	w, span := &p.window, at-p.from
	if span < usualSpan || w.good < usualFirst || w.ended < rateEnds && span < usualLongest {
		return
	}
	mean := w.took / w.good / 1e9
	within := func(memory float64) float64 {
		return min(1-math.Exp(-float64(span)/1e9/memory), w.good/usualKnown)
	}
	switch {
	case p.usual == 0:
		p.set(mean)
	case learns && w.good >= holdSound*w.ended && mean >= takes/usualNear:
		p.set(max(mean, takes)) // as work takes without a limit, and nothing piles up
	case free && p.known <= usualKnown:
		p.set(p.usual + w.good/p.known*(mean-p.usual)) // short work ends first
	case mean < p.usual:
		p.set(p.usual + within(usualDown)*(mean-p.usual))
	case calm || free && mean <= usualNear*p.usual:
		p.set(p.usual + within(usualUp)*(mean-p.usual))
	}
	*w, p.from = counts{}, at
}

// set makes a time the usual one.
func (p *pace) set(usual float64) {
	p.usual = usual
	p.typical.Store(int64(usual * 1e9))
}

// asUsual reports whether nearly all work that ended lately succeeded in its usual time. Then
// nothing waits, whatever is in flight: long polls, streams, work that hangs beside other work.
func (p *pace) asUsual() bool {
	return p.last.good > 0 && p.last.good >= holdSound*p.last.ended && p.last.took <= usualMost*p.usual*1e9*p.last.good
}
