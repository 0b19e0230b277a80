package adaptive

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Option adjusts a limiter or a strategy at construction. An option that a
// constructor does not know is an error that names both, never ignored.
type Option struct {
	name  string
	apply func(*settings)
}

// settings is what options write to.
type settings struct {
	min, max   int
	initial    int
	timeout    time.Duration
	target     time.Duration
	signal     Signal
	queue      Queue // the zero Queue: nobody waits
	priorities bool
	maxKeys    int
	limitOf    func(key string) int
	k          float64
	span       time.Duration
	buckets    int
}

// WithLimits keeps the limit within min and max, both included: 1 <= min <=
// max. What it stands at without the option is said at each constructor.
func WithLimits(min, max int) Option {
	return Option{"WithLimits", func(s *settings) { s.min, s.max = min, max }}
}

// WithInitial sets the limit that a strategy starts from. The default is 20,
// or the nearest value within the limits.
func WithInitial(n int) Option {
	return Option{"WithInitial", func(s *settings) { s.initial = n }}
}

// configure applies opts to the defaults and checks what concerns everybody.
func configure(who string, s *settings, opts []Option, known ...string) error {
	for _, o := range opts {
		if o.apply == nil {
			return fmt.Errorf("adaptive: %s: the zero Option is not an option", who)
		}
		if !slices.Contains(known, o.name) {
			return fmt.Errorf("adaptive: %s does not take the option %s, only %s",
				who, o.name, strings.Join(known, ", "))
		}
		o.apply(s)
	}
	switch {
	case s.min < 1:
		return fmt.Errorf("adaptive: %s: the lower limit is %d, want 1 or more", who, s.min)
	case s.max < s.min || s.max > noLimit:
		return fmt.Errorf("adaptive: %s: the upper limit is %d, want %d (the lower one) to %d",
			who, s.max, s.min, noLimit)
	}
	return nil
}

// start is the initial limit: the one asked for, which must be within the
// limits, or the usual one moved there.
func (s *settings) start(who string, usual int) (int, error) {
	if s.initial == 0 {
		return min(max(usual, s.min), s.max), nil
	}
	if s.initial < s.min || s.initial > s.max {
		return 0, fmt.Errorf("adaptive: %s: the initial limit is %d, want %d to %d",
			who, s.initial, s.min, s.max)
	}
	return s.initial, nil
}
