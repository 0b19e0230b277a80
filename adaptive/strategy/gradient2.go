package strategy

import "github.com/sluice-go/sluice/adaptive"

// Gradient2 compares the current response time with its long-term mean, and lowers the limit in
// proportion once the current one is more than 1.5 times the mean: Gradient2 of Netflix
// concurrency-limits.
//
// For each sample g = clamp(1.5*long/short, 0.5, 1), where long is an exponential mean over 600
// samples, and the limit moves by a fifth of the way to limit*g, plus 4 if g is 1. While less than
// half of the limit is in flight the limit is constant. A long-term mean above twice the current
// time decays by 5 % a sample, so that it follows a service that has become faster. Until g first
// falls below 1 the limit grows by 1 for each sample, which doubles it in each round trip. Failures
// do not count, because their duration is a timeout.
//
// Options: [adaptive.WithLimits], 20 to 200 by default, and [WithInitial].
//
// Do not use it where response times differ by nature, between routes for example: it mistakes a
// change of the mix for overload. It misses an overload that grows as slowly as the mean, and
// forgets one that lasts for more samples than the mean: the limit rises again.
func Gradient2(opts ...adaptive.Option) adaptive.Strategy {
	g := &gradient2{doubling: true}
	if _, err := g.init("Gradient2", 200, opts); err != nil {
		return invalid{err}
	}
	return g
}

const (
	gradientMemory    = 600
	gradientWarmup    = 10
	gradientTolerance = 1.5
	gradientHeadroom  = 4
	gradientSmoothing = 0.2
	gradientDecay     = 0.95
)

type gradient2 struct {
	estimate
	long     float64 // mean response time, nanoseconds
	samples  int
	doubling bool
}

func (g *gradient2) Observe(s adaptive.Sample) {
	if failed(s) || !g.mu.TryLock() {
		return
	}
	defer g.mu.Unlock()
	short := float64(max(s.RTT, 1))
	g.average(short)
	if g.unused(s) {
		return
	}
	gradient := min(max(gradientTolerance*g.long/short, 0.5), 1)
	if gradient < 1 {
		g.doubling = false
	}
	switch {
	case g.doubling:
		g.set(g.value + 1)
	case gradient == 1:
		g.set(g.value + gradientSmoothing*gradientHeadroom)
	default:
		g.set(g.value * (1 - gradientSmoothing*(1-gradient)))
	}
}

// average adds a response time to the long-term mean, a plain mean for the first few.
func (g *gradient2) average(short float64) {
	g.samples = min(g.samples+1, gradientWarmup+1)
	weight := 2.0 / (gradientMemory + 1)
	if g.samples <= gradientWarmup {
		weight = 1 / float64(g.samples)
	}
	g.long += weight * (short - g.long)
	if g.long > 2*short {
		g.long *= gradientDecay
	}
}
