package strategy

import (
	"math"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/internal/machine"
)

// Vegas estimates the number of queued requests among those in flight, limit*(1 - minRTT/RTT), and
// keeps it between 3 and 6 times the decimal logarithm of the limit: TCP Vegas (Brakmo and
// Peterson, 1995) as adapted by Netflix concurrency-limits.
//
// A sample with a queue of at most one logarithm raises the limit by 6 logarithms, and one with a
// queue below 3 by 1. A queue above 6, or a failure, lowers it by 1. While less than half of the
// limit is in flight the limit is constant.
//
// After about 20 samples per unit of the limit it probes: it halves the limit for one and a half
// round trips and measures the smallest response time again, as TCP's BBR does. Without probes it
// would throttle a service that has become slower for good, and gradually take its own queue for
// the normal state.
//
// Options: [adaptive.WithLimits], 20 to 1000 by default, and [WithInitial].
//
// Do not use it where response times differ by nature: the fastest kind of request sets the
// standard for all.
func Vegas(opts ...adaptive.Option) adaptive.Strategy {
	v := &vegas{minRTT: math.Inf(1)}
	if _, err := v.init("Vegas", 1000, opts); err != nil {
		return invalid{err}
	}
	v.schedule()
	return v
}

const vegasProbe = 30 // samples between probes per unit of the limit, at most

type vegas struct {
	estimate
	minRTT  float64 // nanoseconds
	probed  float64 // smallest response time of the running probe
	left    float64 // samples until the next probe or, in a probe, until its end
	probing bool
}

func (v *vegas) Observe(s adaptive.Sample) {
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
	v.minRTT = min(v.minRTT, rtt)
	if v.probe(rtt) || v.unused(s) {
		return
	}
	switch queue := math.Ceil(v.value * (1 - v.minRTT/rtt)); {
	case queue <= step:
		v.set(v.value + 6*step)
	case queue < 3*step:
		v.set(v.value + step)
	case queue > 6*step:
		v.set(v.value - step)
	}
}

// probe reports whether the sample belongs to a probe. Response times count only in the second
// part, once the work from before the probe has ended.
func (v *vegas) probe(rtt float64) bool {
	v.left--
	switch {
	case v.probing && v.left > 0:
		if v.left <= v.value/2 {
			v.probed = min(v.probed, rtt)
		}
		v.limit.Store(int64(max(v.value/2, v.min)))
	case v.probing:
		v.minRTT = min(v.probed, rtt)
		v.set(v.value)
		v.schedule()
	case v.left <= 0:
		v.probing, v.left, v.probed = true, 1.5*v.value, math.Inf(1)
	}
	return v.probing
}

// schedule sets the next probe. Random distances keep instances from probing at the same time and
// measuring one another.
func (v *vegas) schedule() {
	v.probing, v.left = false, vegasProbe*v.value*(0.5+machine.Float64(v.machine)/2)
}
