package adaptive

import (
	"fmt"
	"math"
	"time"
)

// NewAIMD makes a strategy that adds 1 to the limit for each sample while at
// least half of it is in flight, and takes off a tenth when work fails or takes
// longer than a timeout: additive increase, multiplicative decrease (Chiu and
// Jain, 1989), as in Netflix concurrency-limits.
//
// Work that was admitted before the last decrease says nothing about the new
// limit, so a burst of a hundred timeouts is one decrease and not a hundred, as
// in TCP.
//
// Options: [WithLimits], 20 to 200 by default, [WithInitial], and [WithTimeout],
// 5 s by default.
//
// It learns by breaking things. Take it where a dependency refuses early and
// cheaply; elsewhere it finds the limit only when requests have failed.
func NewAIMD(opts ...Option) (Strategy, error) {
	s := settings{min: 20, max: 200, timeout: 5 * time.Second}
	if err := configure("NewAIMD", &s, opts, "WithLimits", "WithInitial", "WithTimeout"); err != nil {
		return nil, err
	}
	if s.timeout <= 0 {
		return nil, fmt.Errorf("adaptive: NewAIMD: the timeout is %v, want more than 0", s.timeout)
	}
	a := &aimd{timeout: s.timeout, lowered: math.MinInt64}
	if err := a.init("NewAIMD", &s, 20); err != nil {
		return nil, err
	}
	return a, nil
}

// WithTimeout sets the response time, above 0, from which a success is as bad
// as a failure.
func WithTimeout(d time.Duration) Option {
	return Option{"WithTimeout", func(s *settings) { s.timeout = d }}
}

const aimdBackoff = 0.9

type aimd struct {
	estimate
	timeout time.Duration
	lowered int64 // instant of the last decrease
}

func (a *aimd) Observe(s Sample) {
	if !a.mu.TryLock() {
		return
	}
	defer a.mu.Unlock()
	end := s.end()
	switch {
	case failed(s) || s.RTT > a.timeout:
		if end-int64(s.RTT) >= a.lowered {
			a.lowered = end
			a.set(a.value * aimdBackoff)
		}
	case !a.unused(s):
		a.set(a.value + 1)
	}
}
