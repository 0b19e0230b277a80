package live

import (
	"fmt"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/examples/gateway/config"
)

// rated and sized are the limiters whose limit can be changed while they run.
type (
	rated interface{ SetRate(algo.Rate) error }
	sized interface{ SetBurst(int64) error }
)

// adjustable reports whether e can become the limit that spec says: the same
// algorithm, and the same in everything but rate and burst.
func adjustable(e *entry, spec algo.Spec) bool {
	if _, ok := e.limiter.(rated); !ok {
		return false
	}
	if _, ok := burstOf(spec); !ok && (e.pinned || spec.Given("burst")) {
		return false
	}
	return rest(e.spec) == rest(spec)
}

// rest is a spec without the fields that can be changed. It is text, because a
// spec also remembers which options were given as zero.
func rest(s algo.Spec) string {
	s.Algorithm = config.AlgorithmOf(s)
	s.Rate, s.Burst = algo.PerSecond(1), 1
	return s.String()
}

// burstOf is the burst in force under a spec, given or by default; false where
// there is none to be set.
func burstOf(s algo.Spec) (int64, bool) {
	if s.Given("burst") {
		return s.Burst, true
	}
	switch config.AlgorithmOf(s) {
	case "token-bucket", "leaky-bucket":
		return s.Rate.Count, true
	case "strict":
		return s.Rate.Count - s.Rate.Count/2, true
	case "nginx":
		return 0, true
	}
	return 0, false
}

// adjust changes rate and burst. If one is rejected because of the old value
// of the other, the other changes first.
func (e *entry) adjust(spec algo.Spec) error {
	l, ok := e.limiter.(rated)
	if !ok {
		return fmt.Errorf("%T has no rate to set", e.limiter)
	}
	burst, ok := burstOf(spec)
	s, isSized := e.limiter.(sized)
	if !ok || !isSized || !(e.pinned || spec.Given("burst")) {
		return l.SetRate(spec.Rate)
	}
	e.pinned = true
	if l.SetRate(spec.Rate) == nil {
		return s.SetBurst(burst)
	}
	if err := s.SetBurst(burst); err != nil {
		return err
	}
	return l.SetRate(spec.Rate)
}
