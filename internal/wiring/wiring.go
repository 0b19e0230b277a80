// Package wiring has what the constructors of adaptive limiters and of their strategies share:
// options, errors and ownership.
package wiring

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/sluice-go/sluice/internal/machine"
	"github.com/sluice-go/sluice/internal/option"
)

// NoLimit is the limit of a strategy that sees no reason for one, and the largest of all.
const NoLimit = math.MaxInt32

// Option adjusts a limiter or a strategy at construction. An option that does not
// belong to the constructor, or is given twice, is an error that names both.
type Option struct {
	name  string
	value any
}

// With makes the option of a name.
func With(name string, value any) Option { return Option{name, value} }

// OnMachine runs a limiter or a strategy on m, for simulators. Every constructor takes it.
func OnMachine(m machine.Machine) Option { return With("machine", m) }

// Set is the values of the options that were given, by name.
type Set map[string]any

// Read checks options. The constructor and the options that it takes are in the errors.
func Read(constructor string, opts []Option, takes ...string) (Set, error) {
	set := Set{}
	opts = slices.DeleteFunc(slices.Clone(opts), func(o Option) bool {
		if o.name == "machine" {
			set[o.name] = o.value
		}
		return o.name == "machine"
	})
	if err := option.Apply(&set, opts, Option.split, takes); err != nil {
		return nil, fmt.Errorf("%s: %w", constructor, err)
	}
	return set, nil
}

func (o Option) split() (string, func(*Set) error) {
	if o.name == "" {
		return "", nil
	}
	return o.name, option.Sets(func(s *Set) { (*s)[o.name] = o.value })
}

// Get is the value of an option.
func Get[T any](s Set, name string, byDefault T) T {
	if v, ok := s[name].(T); ok {
		return v
	}
	return byDefault
}

// Machine is the machine to run on.
func (s Set) Machine() machine.Machine { return Get[machine.Machine](s, "machine", machine.Real{}) }

// Limits is the value of WithLimits.
type Limits struct{ Min, Max int }

// Limits are those of WithLimits, checked.
func (s Set) Limits(constructor string, byDefault Limits) (l Limits, err error) {
	l = Get(s, "WithLimits", byDefault)
	switch {
	case l.Min < 1:
		err = fmt.Errorf("%s: lower limit is %d, want 1 or more", constructor, l.Min)
	case l.Max < l.Min || l.Max > NoLimit:
		err = fmt.Errorf("%s: upper limit is %d, want %d (the lower limit) to %d", constructor, l.Max, l.Min, NoLimit)
	}
	return l, err
}

// Check is the error of a strategy, signal or other value that has one to report.
func Check(v any) error {
	if c, ok := v.(interface{ Check() error }); ok {
		return c.Check()
	}
	return nil
}

// Owned marks a strategy that belongs to a limiter. Strategies embed it.
type Owned struct{ taken atomic.Bool }

// Take reports whether it belonged to none.
func (o *Owned) Take() bool { return o.taken.CompareAndSwap(false, true) }

// GiveBack undoes Take.
func (o *Owned) GiveBack() { o.taken.Store(false) }
