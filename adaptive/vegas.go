package adaptive

import (
	"math"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/machine"
)

// NewVegas makes a strategy that estimates how many of the requests in flight
// are queued, limit*(1 - minRTT/RTT), and holds that between 3 and 6 times the
// decimal logarithm of the limit: TCP Vegas (Brakmo and Peterson, 1995) as
// adapted by Netflix concurrency-limits.
//
// A sample with a queue of at most one logarithm raises the limit by 6, one
// below 3 by 1, one above 6 lowers it by 1, and so does a failure. When less
// than half of the limit is in flight it holds.
//
// After about 20 samples for each unit of the limit it measures the smallest
// response time afresh, so that a service that has become slower for good is
// not throttled for ever: for one and a half round trips it halves the limit,
// as TCP's BBR does to see the path without its own queue. Without that it would
// take its queue for the normal state, a little more each time.
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
	v := &vegas{least: math.Inf(1)}
	if err := v.init("NewVegas", &s, 20); err != nil {
		return nil, err
	}
	v.plan()
	return v, nil
}

const vegasProbe = 30 // most samples between probes for each unit of the limit

type vegas struct {
	estimate
	least float64 // the smallest response time, nanoseconds
	fresh float64 // the smallest one of the probe
	left  float64 // samples until the next probe; in a probe, until its end
	probe bool
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
	v.least = min(v.least, rtt)
	if v.probes(rtt) || v.unused(s) {
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

// probes reports whether the sample belongs to a probe. What was in flight when
// it began must have left before the response times count.
func (v *vegas) probes(rtt float64) bool {
	v.left--
	switch {
	case v.probe && v.left > 0:
		if v.left <= v.value/2 {
			v.fresh = min(v.fresh, rtt)
		}
		v.word.Store(int64(max(v.value/2, v.min)))
	case v.probe:
		v.least = min(v.fresh, rtt)
		v.set(v.value)
		v.plan()
	case v.left <= 0:
		v.probe, v.left, v.fresh = true, 1.5*v.value, math.Inf(1)
	}
	return v.probe
}

// plan sets the next probe, at a random distance: instances that probe at the
// same time would measure one another.
func (v *vegas) plan() {
	v.probe, v.left = false, vegasProbe*v.value*(0.5+machine.Float64()/2)
}

func failed(s Sample) bool { return s.Outcome != algo.Succeeded }
