package adaptive

import (
	"math"
	"math/rand/v2"

	"github.com/sluice-go/sluice/algo"
)

// NewVegas makes a strategy that estimates how many of the requests in flight
// are queued, limit*(1 - minRTT/RTT), and holds that between 3 and 6 times the
// decimal logarithm of the limit: TCP Vegas (Brakmo and Peterson, 1995) as
// adapted by Netflix concurrency-limits.
//
// A sample with a queue of at most one logarithm raises the limit by 6, one
// below 3 by 1, one above 6 lowers it by 1, and so does a failure. When less
// than half of the limit is in flight it holds. The smallest response time is
// forgotten after about 30 samples for each unit of the limit, and replaced by
// the smallest one since the last time, so that a service that has become
// slower for good is not throttled for ever.
//
// Options: [WithLimits], 1 to 1000 by default, and [WithInitial].
//
// Do not use it where response times differ by their nature: the shortest kind
// of request sets the standard for all.
func NewVegas(opts ...Option) (Strategy, error) {
	s := settings{min: 1, max: 1000}
	if err := configure("NewVegas", &s, opts, "WithLimits", "WithInitial"); err != nil {
		return nil, err
	}
	v := &vegas{least: math.Inf(1), fresh: math.Inf(1)}
	if err := v.init("vegas", &s, 20); err != nil {
		return nil, err
	}
	v.plan()
	return v, nil
}

const vegasProbe = 30 // samples for each unit of the limit

type vegas struct {
	estimate
	least float64 // the smallest response time that is believed, nanoseconds
	fresh float64 // the smallest one since the last probe
	left  float64 // samples until the next probe
}

func (v *vegas) Observe(s Sample) {
	if !v.mu.TryLock() {
		return
	}
	defer v.mu.Unlock()
	step := max(math.Log10(v.value), 1)
	if failed(s) {
		v.set(v.value - step)
		return
	}
	rtt := float64(max(s.RTT, 1))
	v.probe(rtt)
	if v.unused(s) {
		return
	}
	switch queue := math.Ceil(v.value * (1 - v.least/rtt)); {
	case queue <= step:
		v.set(v.value + 6*step)
	case queue < 3*step:
		v.set(v.value + step)
	case queue > 6*step:
		v.set(v.value - step)
	}
}

// probe keeps the smallest response time and, now and then, forgets what is
// older than the last time.
func (v *vegas) probe(rtt float64) {
	v.least, v.fresh = min(v.least, rtt), min(v.fresh, rtt)
	if v.left--; v.left > 0 {
		return
	}
	v.least, v.fresh = v.fresh, math.Inf(1)
	v.plan()
}

// plan sets the next probe, at a random distance: instances that probe at the
// same time would measure one another.
func (v *vegas) plan() { v.left = vegasProbe * v.value * (0.5 + rand.Float64()/2) }

func failed(s Sample) bool { return s.Outcome != algo.Succeeded }
