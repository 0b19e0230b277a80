package algo

import (
	"fmt"
	"strings"
)

// algorithm is what a Spec can name.
type algorithm struct {
	name string
	make func(s *Spec, opts []Option) (Limiter, error)
}

const (
	defaultAlgorithm = "token-bucket"
	warmingAlgorithm = "smooth-warming-up"
)

// algorithms is every limiter that a Spec can make.
var algorithms = []algorithm{
	{defaultAlgorithm, maker(NewTokenBucket)},
	{"leaky-bucket", maker(NewLeakyBucket)},
	{"pacer", maker(NewPacer)},
	{"nginx", maker(NewNginx)},
	{"smooth-bursty", maker(NewSmoothBursty)},
	{warmingAlgorithm, makeWarmingUp},
	{"fixed-window", maker(NewFixedWindow)},
	{"sliding-window", maker(NewSlidingWindow)},
	{"sliding-log", maker(NewSlidingLog)},
	{"strict", maker(NewStrict)},
}

// maker adapts a constructor. (A nil *L in a Limiter would not be nil.)
func maker[L Limiter](construct func(Rate, ...Option) (L, error)) func(*Spec, []Option) (Limiter, error) {
	return func(s *Spec, opts []Option) (Limiter, error) {
		if s.Warmup != 0 {
			return nil, fmt.Errorf("algo: spec: warmup is %v, and %s has none", s.Warmup, s.Algorithm)
		}
		l, err := construct(s.Rate, opts...)
		if err != nil {
			return nil, err
		}
		return l, nil
	}
}

func makeWarmingUp(s *Spec, opts []Option) (Limiter, error) {
	l, err := NewSmoothWarmingUp(s.Rate, s.Warmup, opts...)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func algorithmNamed(name string) (algorithm, error) {
	if name == "" {
		name = defaultAlgorithm
	}
	known := make([]string, 0, len(algorithms))
	for _, a := range algorithms {
		if a.name == name {
			return a, nil
		}
		known = append(known, a.name)
	}
	return algorithm{}, fmt.Errorf("algo: spec: algorithm is %q, want %s", name, strings.Join(known, ", "))
}
