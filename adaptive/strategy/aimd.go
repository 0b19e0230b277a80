package strategy

import (
	"fmt"
	"math"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/internal/wiring"
)

// AIMD raises the limit by 1 for each round trip in which at least half of it is in flight, and lowers it
// by a tenth when work fails or exceeds a timeout: additive increase, multiplicative decrease (Chiu and
// Jain, 1989; RFC 5681). Until the first decrease it adds 1 for each success, which doubles the limit in a
// round trip.
//
// Failures count at any speed: a rejection is faster than a success. Work that was admitted before the last
// decrease does not show the effect of the new limit, so a hundred simultaneous failures are one decrease.
//
// Options: [adaptive.WithLimits], 20 to 200 by default, [WithInitial], and [WithTimeout], 5 s by default.
//
// Use it where a dependency rejects what it cannot serve and rarely fails otherwise: it learns from
// failures alone, so a share p of other failures keeps the limit at about sqrt(10/p) or its minimum.
// Without rejections use [Gradient2].
func AIMD(opts ...adaptive.Option) adaptive.Strategy {
	a := &aimd{decreased: math.MinInt64}
	set, err := a.init("AIMD", 200, opts, "WithTimeout")
	if err != nil {
		return invalid{err}
	}
	if a.timeout = wiring.Get(set, "WithTimeout", 5*time.Second); a.timeout <= 0 {
		return invalid{fmt.Errorf("AIMD: timeout is %v, want more than 0", a.timeout)}
	}
	return a
}

// WithTimeout sets the response time, above 0, from which [AIMD] counts a success
// as a failure.
func WithTimeout(d time.Duration) adaptive.Option { return wiring.With("WithTimeout", d) }

const aimdBackoff = 0.9

type aimd struct {
	estimate
	timeout   time.Duration
	decreased int64 // instant of the last decrease
}

func (a *aimd) ObserveFastFailure(s adaptive.Sample) { a.Observe(s) }

func (a *aimd) Observe(s adaptive.Sample) {
	if !a.mu.TryLock() {
		return
	}
	defer a.mu.Unlock()
	end := end(s, a.machine)
	switch {
	case failed(s) || s.RTT > a.timeout:
		if end-int64(s.RTT) >= a.decreased {
			a.decreased = end
			a.set(a.value * aimdBackoff)
		}
	case a.unused(s):
	case a.decreased == math.MinInt64:
		a.set(a.value + 1)
	default:
		a.set(a.value + 1/a.value)
	}
}
