package algo

import "fmt"

// make makes the limiter that s describes.
func (k *kind) make(s Spec) (*RateLimiter, error) {
	l := &RateLimiter{kind: k}
	l.corrections.engine = k.start(&l.words, s)
	if l.engine() != &l.words {
		l.values = l.engine()
	}
	if err := l.set(s, s.Rate); err != nil {
		return nil, err
	}
	return l, nil
}

// set replaces the limit; burstAt is the rate at which the burst was set.
func (l *RateLimiter) set(s Spec, burstAt Rate) error {
	if err := l.kind.change(l.engine(), s, burstAt); err != nil {
		return fmt.Errorf("algo: %s: %w", l.kind.title, err)
	}
	l.setting.Store(&setting{s.Rate, burstAt, s.Options()})
	return nil
}

// setting is a limit in use. It keeps the given options and not the Spec, whose unset options take
// the memory of two keys (TestM1_OneKey).
type setting struct {
	rate    Rate
	burstAt Rate // the rate when the burst was set
	options []Option
}

// replace sets the Spec and burstAt that to makes from those in use.
func (l *RateLimiter) replace(method string, to func(s Spec, burstAt Rate) (Spec, Rate, error)) error {
	if err := l.misuse(0); err != nil {
		return err
	}
	if l.kind == nil {
		return l.unsupported(method)
	}
	l.changing.Lock()
	defer l.changing.Unlock()
	s, burstAt, err := to(l.Spec(), l.setting.Load().burstAt)
	if err != nil {
		return err
	}
	return l.set(s, burstAt)
}

// Spec returns the limit in use; the zero Spec for a marker or a share.
func (l *RateLimiter) Spec() Spec {
	in := l.setting.Load()
	if in == nil {
		return Spec{}
	}
	s := Spec{Algorithm: l.kind.name, Rate: in.rate}
	for _, o := range in.options {
		s.write(o)
	}
	return s
}

// SetRate changes the rate while the limiter runs. In windows and logs keys keep their spent units.
// In buckets they keep the time until they are full, so their spent units grow and shrink with the
// rate: half of 10 an hour becomes half of 100 an hour. After the rate is raised no key waits
// longer than one that has just spent the whole burst; smooth-bursty and smooth-warming-up keep
// debt, as Guava does. An unset burst follows the count of the rate.
func (l *RateLimiter) SetRate(to Rate) error {
	return l.replace("SetRate", func(s Spec, burstAt Rate) (Spec, Rate, error) {
		s.Rate = to
		return s, burstAt, nil
	})
}

// SetBurst changes the burst while the limiter runs. Keys keep their spent units. After the burst
// is raised no key waits longer than one that has just spent all of it. Algorithms without the
// option [Burst] do not support it.
func (l *RateLimiter) SetBurst(n int64) error {
	return l.replace("SetBurst", func(s Spec, burstAt Rate) (Spec, Rate, error) {
		if l.kind.check("Burst") != nil {
			return s, burstAt, l.unsupported("SetBurst")
		}
		s.write(Burst(n))
		return s, s.Rate, nil
	})
}

// SetSpec changes the whole limit while the limiter runs; see [Spec.Apply].
func (l *RateLimiter) SetSpec(s Spec) error {
	return l.replace("SetSpec", func(was Spec, _ Rate) (Spec, Rate, error) {
		next, err := was.replace(l.kind, s)
		return next, s.Rate, err
	})
}

// construct makes the limiter that s and opts describe.
func (k *kind) construct(s Spec, opts []Option) (*RateLimiter, error) {
	s, err := k.configure(s, opts)
	if err != nil {
		return nil, err
	}
	return k.make(s)
}
