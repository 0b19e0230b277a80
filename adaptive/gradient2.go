package adaptive

// NewGradient2 makes a strategy that compares the response time of the moment
// with its long-term mean, and lowers the limit in proportion once the present
// is more than half as slow again: Gradient2 of Netflix concurrency-limits.
//
// For each sample g = clamp(1.5*long/short, 0.5, 1), where long is an
// exponential mean over 600 samples, and the limit moves by a fifth of the way
// to limit*g, plus 4 if g is 1. When less than half of the limit is in flight
// it holds. A long-term mean above twice the present decays by 5 % a sample,
// so that it follows a service that has become faster. Until g first falls
// below 1 the limit grows by 1 for each sample, which doubles it in each round
// trip. Failures do not count: their duration is that of a timeout.
//
// Options: [WithLimits], 20 to 200 by default, and [WithInitial].
//
// Do not use it where response times differ by their nature, between routes
// for example: it takes a change of the mix for overload. Overload that comes
// so slowly that the mean follows is not seen at all.
func NewGradient2(opts ...Option) (Strategy, error) {
	s := settings{min: 20, max: 200}
	if err := configure("NewGradient2", &s, opts, "WithLimits", "WithInitial"); err != nil {
		return nil, err
	}
	g := &gradient2{doubling: true}
	if err := g.init("NewGradient2", &s, 20); err != nil {
		return nil, err
	}
	return g, nil
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
	long     float64 // nanoseconds
	samples  int
	doubling bool
}

func (g *gradient2) Observe(s Sample) {
	if failed(s) || !g.mu.TryLock() {
		return
	}
	defer g.mu.Unlock()
	short := float64(max(s.RTT, 1))
	g.remember(short)
	if g.unused(s) {
		return
	}
	by := min(max(gradientTolerance*g.long/short, 0.5), 1)
	if by < 1 {
		g.doubling = false
	}
	switch {
	case g.doubling:
		g.set(g.value + 1)
	case by == 1:
		g.set(g.value + gradientSmoothing*gradientHeadroom)
	default:
		g.set(g.value * (1 - gradientSmoothing*(1-by)))
	}
}

// remember takes a response time into the long-term mean, which is a plain mean
// of the first few.
func (g *gradient2) remember(short float64) {
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
