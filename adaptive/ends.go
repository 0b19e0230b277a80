package adaptive

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/adaptive/internal/window"
	"github.com/sluice-go/sluice/algo"
)

// counts sums up a span of time.
type counts struct {
	began, turned float64 // arrivals with a slot, and without one
	ended         float64 // work, without refusals
	good          float64 // successes of work that began within the last limit
	aged          float64 // work that took standingSpan or more
	left, waited  float64 // work whose client had probably left, and the sum of its times, s
	fit           fit
}

// counters collects counts until they are drained. Every request writes them.
type counters struct {
	began, turned, ended, good, aged, left, waited atomic.Int64

	sampling sync.Mutex // guards fit
	fit      fit
}

func (c *counters) drain() counts {
	c.sampling.Lock()
	samples := c.fit
	c.fit = fit{}
	c.sampling.Unlock()
	f := func(n *atomic.Int64) float64 { return float64(n.Swap(0)) }
	return counts{f(&c.began), f(&c.turned), f(&c.ended), f(&c.good), f(&c.aged), f(&c.left), f(&c.waited) / 1e6, samples}
}

// standingSpan is the time after which work in flight is standing work, such as a long poll.
const standingSpan = window.LowestSpan

const (
	rateEnds   = 20   // least ends for a rate, a mean or a slope
	rateMemory = 0.1  // s, of the rate of ends
	slowMemory = 1.0  // s, of the slow rate
	longMemory = 3.0  // s, of the work in flight; 1.5 times that mean is growth
	fitMemory  = 1.5  // s, or three mean times: the span of a generation of samples
	leftFew    = 8    // clients that left, too few to say how long the others wait
	leftShare  = 0.05 // of the ends, from which clients leave too often: clients of .3 s
)

// pace measures how work ends. It forgets everything within seconds.
type pace struct {
	target       float64 // s
	rate, slow   float64 // ends per second, over rateMemory and slowMemory
	slowN, longN float64 // work in flight, over slowMemory and longMemory
	aged         float64 // ends of standing work per second
	left, waited float64 // as in counts, over slowMemory
	fit          fit     // both generations
	generations  [2]fit  // the current one and the last
	turned       int64   // instant at which the current one began
	updated      int64
	lastEnd      int64 // instant
	few          int64 // last instant at which few were in flight, without a limit
	lastTimed    int64 // instant of the last end with a meaningful time
	woke         int64 // instant of the first end after a silence

	typical atomic.Int64 // mean time of work, microseconds; 0: unknown
	old     atomic.Bool  // most work that ends has waited for standingSpan: it is a queue
}

// end counts work that began with n in flight. Work from before since does not show the effect of the
// limit in force; a refusal shows nothing.
func (p *pace) end(c *counters, n int64, s Sample, since, patience int64) {
	rtt := int64(s.RTT)
	if rtt > standingSpan {
		c.aged.Add(1)
		if !p.old.Load() {
			return
		}
	}
	us, typical, good := rtt/1e3, p.typical.Load(), s.Outcome.Result() == algo.Succeeded
	if !good && us < typical/2 {
		return
	}
	c.ended.Add(1)
	fresh := int64(s.End)-rtt >= since
	if good && fresh {
		c.good.Add(1)
	}
	switch {
	case !good && us > typical+typical/16 && (!s.Outcome.Timed() && rtt >= patience || float64(rtt) > p.target*1e9):
		c.left.Add(1)
		c.waited.Add(us)
	case !good && !s.Outcome.Timed(): // a 404, not a client that left: as many 404s took longer
		c.left.Add(-1)
		c.waited.Add(-us)
	case !s.Outcome.Timed(): // a stream, or a slow client: its time means nothing
	case fresh && c.sampling.TryLock(): // if two end at once, one sample suffices
		c.fit.add(sample(float64(n), float64(us)/1e6))
		c.sampling.Unlock()
	}
}

// update averages the counts c and the n in flight over the time until at.
func (p *pace) update(at int64, c counts, n float64) {
	dt := float64(max(at-p.updated, 1)) / 1e9
	p.updated = at
	follow := func(v *float64, memory, is float64) { *v += (1 - math.Exp(-dt/memory)) * (is - *v) }
	follow(&p.rate, min(max(rateEnds/max(p.rate, 1e-9), rateMemory), 2*slowMemory), c.ended/dt)
	follow(&p.slow, slowMemory, c.ended/dt)
	follow(&p.aged, slowMemory, c.aged/dt)
	follow(&p.slowN, slowMemory, n)
	follow(&p.longN, longMemory, n)
	if float64(at-p.turned)/1e9 > max(fitMemory, p.target, 3*min(p.fit.mean(), p.takes())) {
		p.turned, p.generations = at, [2]fit{{}, p.generations[0]}
	}
	p.generations[0].add(c.fit)
	p.fit = p.generations[1]
	p.fit.add(p.generations[0])
	keep := math.Exp(-dt / slowMemory)
	p.left, p.waited = max(p.left*keep+c.left, 0), max(p.waited*keep+c.waited, 0)
	p.typical.Store(int64(p.fit.mean() * 1e6))
	if p.old.Load() {
		p.old.Store(p.aged > p.slow/2)
	} else {
		p.old.Store(p.aged > p.slow)
	}
	if c.fit.one+c.left > 0 {
		p.lastTimed = at
	}
	if c.ended > 0 {
		if p.silent(at) || at-p.lastEnd > idleEnds {
			p.woke = at
		}
		p.lastEnd = at
	}
}

// forget drops all samples of the time of work.
func (p *pace) forget() { p.fit, p.generations = fit{}, [2]fit{} }

// takes returns how long work took on average in the last second, by Little's law, s.
func (p *pace) takes() float64 { return p.slowN / max(p.slow, 1e-9) }

// lasts returns the mean time of work in s, including that of clients that left; 0: unknown.
func (p *pace) lasts() float64 {
	if all := p.fit.one + p.left; all > 1 {
		return (p.fit.t + p.waited) / all
	}
	return 0
}

// serves returns the ends per second without clients that left, at least half of all.
func (p *pace) serves() float64 { return max(p.slow-p.left, p.slow/2) }

// leaves reports whether many clients leave before their work ends.
func (p *pace) leaves() bool { return p.left > leftFew && p.left > (p.left+p.slow)*leftShare }

// silent reports whether nothing has ended for longer than the rate of the last second explains.
func (p *pace) silent(at int64) bool {
	return float64(at-p.lastEnd)/1e9 > max(rateMemory, 3/max(p.slow, 1e-9))
}

// hangs reports whether many are in flight and nothing has ended for target plus twice the mean time
// of work.
func (p *pace) hangs(at int64, target float64) bool {
	return float64(at-max(p.lastEnd, p.few))/1e9 > max(target, 2*p.fit.mean())
}
