package distributed

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// kind is an algorithm on Redis.
type kind struct {
	title string // for errors
	make  func(algo.Spec) (limit, error)
}

// kinds lists the algorithms by their names in an [algo.Spec].
var kinds = map[string]kind{
	"token-bucket":      {"token bucket", newTokenBucket},
	"leaky-bucket":      {"leaky bucket", newTokenBucket},
	"pacer":             {"pacer", newPacer},
	"fixed-window":      {"fixed window", newFixedWindow},
	"sliding-window":    {"sliding window", newSlidingWindow},
	"sliding-log":       {"sliding log", newSlidingLog},
	"smooth-warming-up": {"smooth warming up", newWarmup},
}

// Limiter makes the limit that spec describes: a token-bucket, leaky-bucket,
// pacer, fixed-window, sliding-window or sliding-log, see the methods of these
// names; or smooth-warming-up with a warm-up above 0, see package classic,
// in whole microseconds. The options keys, deny-new and [algo.Clock] apply only to
// decisions without Redis. See [algo.Spec.Apply] for a change in use.
func (s *Store) Limiter(name string, spec algo.Spec) (*Limiter, error) {
	kind, err := kindOf(&spec)
	if err != nil {
		return nil, fmt.Errorf("distributed: limit %q: %w", name, err)
	}
	l, err := s.prepare(kind.title, name)
	if err != nil {
		return nil, err
	}
	l.blocks = newBlocks(l)
	if err := l.set(spec); err != nil {
		return nil, err
	}
	return s.register(l)
}

// kindOf returns the algorithm of spec, and fills in its name.
func kindOf(spec *algo.Spec) (kind, error) {
	if spec.Algorithm == "" {
		spec.Algorithm = "token-bucket"
	}
	k, ok := kinds[spec.Algorithm]
	if !ok {
		return k, fmt.Errorf("algorithm is %q, want token-bucket, leaky-bucket, pacer, fixed-window, sliding-window, sliding-log or smooth-warming-up: the others are in one process only", spec.Algorithm)
	}
	return k, nil
}

func (s *Store) newLimiter(algorithm, name string, r algo.Rate, opts []algo.Option) (*Limiter, error) {
	spec := algo.Spec{Algorithm: algorithm, Rate: r}
	if len(opts) > 0 {
		var err error
		if spec, err = spec.With(opts...); err != nil {
			return nil, fmt.Errorf("distributed: %s %q: %w", kinds[algorithm].title, name, err)
		}
	}
	return s.Limiter(name, spec)
}

// prepare checks name and makes a limiter that has no limit yet.
func (s *Store) prepare(kind, name string) (*Limiter, error) {
	if name == "" || len(name) > remote.MaxTag {
		return nil, fmt.Errorf("distributed: %s: name %q has %d bytes, want 1 to %d", kind, name, len(name), remote.MaxTag)
	}
	l := &Limiter{store: s, name: name, kind: kind, escaped: remote.Escape(name)}
	l.fallback.limiter = l
	return l, nil
}

// set checks spec and makes it the limit. Keys keep their debt.
func (l *Limiter) set(spec algo.Spec) error {
	lim, err := newLimit(&spec)
	if err != nil {
		return l.errorf("%w", err)
	}
	l.spec = spec
	l.replace(lim)
	return nil
}

// Validate returns the error of [Store.Limiter] for spec, or nil.
func Validate(spec algo.Spec) error {
	if _, err := newLimit(&spec); err != nil {
		return fmt.Errorf("distributed: %w", err)
	}
	return nil
}

// newLimit checks spec, fills it in and makes its limit.
func newLimit(spec *algo.Spec) (limit, error) {
	kind, err := kindOf(spec)
	if err != nil {
		return nil, err
	}
	if n := spec.Rate.Count; spec.Algorithm == "sliding-log" && n > maxUnits { // before package algo reports its own, larger bound
		return nil, fmt.Errorf("rate: count is %d, want at most %d", n, maxUnits)
	}
	if *spec, err = spec.With(); err != nil {
		return nil, err
	}
	return kind.make(*spec)
}

// SetSpec replaces the limit in use, in this process; the algorithm stays. See
// [algo.Spec.Apply].
func (l *Limiter) SetSpec(s algo.Spec) error {
	return l.change(func(was *algo.Spec) error {
		_, err := kindOf(&s)
		if err != nil {
			return err
		}
		if s.Algorithm != was.Algorithm {
			return fmt.Errorf("algorithm is %q and cannot be changed in use: make a new limiter", s.Algorithm)
		}
		now := was.Clock()
		if now == nil && s.Clock() != nil {
			now = time.Now
		}
		if now != nil {
			s, err = s.With(algo.Clock(now))
		}
		*was = s
		return err
	})
}

// SetRate changes the rate in use, in this process only; package rules changes
// limits in all instances. A burst that was not set follows the rate's count.
func (l *Limiter) SetRate(r algo.Rate) error {
	return l.change(func(s *algo.Spec) error { s.Rate = r; return nil })
}

// SetBurst changes the burst of a bucket in use, in this process only.
func (l *Limiter) SetBurst(n int64) error {
	return l.change(func(s *algo.Spec) (err error) { *s, err = s.With(algo.Burst(n)); return err })
}

func (l *Limiter) change(f func(*algo.Spec) error) error {
	l.setting.Lock()
	defer l.setting.Unlock()
	if l.slots != nil {
		return l.errorf("has neither rate nor burst; make a new limiter")
	}
	if l.spec.Algorithm == "" {
		return l.errorf("cannot be changed in use; make a new limiter")
	}
	next := l.spec
	if err := f(&next); err != nil {
		return l.errorf("%w", err)
	}
	return l.set(next)
}
