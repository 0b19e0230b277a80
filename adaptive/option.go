package adaptive

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/internal/machine"
)

// Option adjusts a limiter or a strategy at construction. An option that does not
// belong to the constructor, or is given twice, is an error that names both.
type Option struct {
	name  string
	apply func(*settings)
}

// settings is the target of options.
type settings struct {
	machine    machine.Machine
	min, max   int
	initial    *int // nil: the default
	timeout    time.Duration
	target     time.Duration
	signal     Signal
	queue      Queue // the zero Queue: no waiting
	priorities bool
	shared     bool // between tenants, by weight
	weight     func(tenant string) float64
	maxKeys    int
	limitOf    func(ctx context.Context, key string) int
	span       time.Duration
	buckets    int
}

// WithLimits keeps the limit within min and max, both included: 1 <= min <= max
// <= 2147483647. Each constructor states its default.
func WithLimits(min, max int) Option {
	return Option{"WithLimits", func(s *settings) { s.min, s.max = min, max }}
}

// WithInitial sets the first limit of a strategy, within its limits. The default is
// 20, or the nearest value within the limits.
func WithInitial(n int) Option {
	return Option{"WithInitial", func(s *settings) { s.initial = &n }}
}

// WithTarget sets the response time beyond which an answer is useless, 1 ms to 1 h.
// The default is 500 ms.
func WithTarget(d time.Duration) Option {
	return Option{"WithTarget", func(s *settings) { s.target = d }}
}

const defaultTarget = 500 * time.Millisecond

const machineOption = "machine"

// withMachine runs a limiter or a strategy on m. Every constructor takes it.
func withMachine(m machine.Machine) Option {
	return Option{machineOption, func(s *settings) { s.machine = m }}
}

// configure applies opts to the defaults in s and checks the limits. The
// constructor and the options that it takes are in the errors.
func configure(constructor string, s *settings, opts []Option, takes ...string) error {
	if s.machine == nil {
		s.machine = machine.Real{}
	}
	if s.min == 0 && s.max == 0 {
		s.min, s.max = 1, noLimit
	}
	given := make(map[string]bool, len(opts))
	for _, o := range opts {
		if err := allowed(constructor, o, given, takes); err != nil {
			return err
		}
		given[o.name] = true
		o.apply(s)
	}
	switch {
	case s.min < 1:
		return fmt.Errorf("%s: lower limit is %d, want 1 or more", constructor, s.min)
	case s.max < s.min || s.max > noLimit:
		return fmt.Errorf("%s: upper limit is %d, want %d (the lower limit) to %d", constructor, s.max, s.min, noLimit)
	}
	return nil
}

// allowed reports why a constructor does not take o.
func allowed(constructor string, o Option, given map[string]bool, takes []string) error {
	switch {
	case o.apply == nil:
		return fmt.Errorf("%s: zero Option; options are made by the With functions", constructor)
	case given[o.name]:
		return fmt.Errorf("%s: duplicate option %s", constructor, o.name)
	case o.name == machineOption:
		return nil
	}
	if slices.Contains(takes, o.name) {
		return nil
	}
	return fmt.Errorf("%s: unknown option %s; it takes %s", constructor, o.name, strings.Join(takes, ", "))
}

// start is the first limit: the configured one, which must be within the limits,
// or the nearest value to byDefault within them.
func (s *settings) start(constructor string, byDefault int) (int, error) {
	if s.initial == nil {
		return min(max(byDefault, s.min), s.max), nil
	}
	if n := *s.initial; n < s.min || n > s.max {
		return 0, fmt.Errorf("%s: initial limit is %d, want %d to %d", constructor, n, s.min, s.max)
	}
	return *s.initial, nil
}

// contains reports whether the option with a name is among opts.
func contains(opts []Option, name string) bool {
	return slices.ContainsFunc(opts, func(o Option) bool { return o.name == name })
}
