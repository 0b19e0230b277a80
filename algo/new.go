package algo

import (
	"fmt"
	"strings"
)

// kinds lists every algorithm that a Spec can name. A variable would link all of them into every
// program.
func kinds() []*kind {
	return []*kind{
		&tokenBucket, &leakyBucket, &pacer, &nginx, &smoothBursty, &smoothWarmingUp,
		&fixedWindow, &slidingWindow, &slidingLog, &strict,
	}
}

func kindNamed(name string) (*kind, error) {
	if name == "" {
		name = defaultAlgorithm
	}
	all := kinds()
	known := make([]string, 0, len(all))
	for _, k := range all {
		if k.name == name {
			return k, nil
		}
		known = append(known, k.name)
	}
	return nil, fmt.Errorf("algo: spec: algorithm is %q, want %s", name, strings.Join(known, ", "))
}

// New makes the limiter that s describes. Options in extra override the Spec.
// The error names the field and its value.
func (s Spec) New(extra ...Option) (*RateLimiter, error) {
	k, err := kindNamed(s.Algorithm)
	if err != nil {
		return nil, err
	}
	return k.construct(s, extra)
}

// With returns s with opts written over it and the algorithm's name filled in.
// The errors are the same as from [Spec.New].
func (s Spec) With(opts ...Option) (Spec, error) {
	k, err := kindNamed(s.Algorithm)
	if err != nil {
		return Spec{}, err
	}
	if s, err = k.configure(s, opts); err != nil {
		return Spec{}, err
	}
	if _, err := k.make(s); err != nil {
		return Spec{}, err
	}
	return s, nil
}

func (s Spec) validate() error {
	_, err := s.New()
	return err
}

// Apply changes the limit of l, while in use, to s as a whole: after an error l keeps its limit. Keys
// keep their spent units, as with SetRate. A burst that s does not give follows the rate again.
//
// The algorithm and the options warmup, cold, cells, offset, aligned, zone, start, spread, keys and
// deny-new cannot be changed in use; the error names the first that differs.
//
// l, or exactly one limiter beneath it (see [Walk]), must have the method SetSpec(Spec) error.
func (s Spec) Apply(l Limiter) error {
	type changeable interface{ SetSpec(Spec) error }
	var only changeable
	for one := range Walk(l) {
		if c, ok := one.(changeable); ok {
			if only != nil {
				return fmt.Errorf("algo: spec: %T has several limits to change: apply the Spec to one of them", l)
			}
			only = c
		}
	}
	if only == nil {
		return fmt.Errorf("algo: spec: %T has no limit to change: apply the Spec to the limiter that it chooses, or make a new one", l)
	}
	return only.SetSpec(s)
}
