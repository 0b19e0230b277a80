// Package option applies the options of constructors.
package option

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Apply applies opts to a T, in order. split returns the name of an option, and what it writes: nil if
// it is the zero Option. The error names the first option that is the zero Option, is given twice, is
// not in takes (nil takes all), or refuses its value.
func Apply[O, T any](to *T, opts []O, split func(O) (name string, write func(*T) error), takes []string) error {
	given := make([]string, 0, len(opts))
	for _, o := range opts {
		name, write := split(o)
		switch {
		case write == nil:
			return errors.New("the zero Option is not an option")
		case slices.Contains(given, name):
			return fmt.Errorf("duplicate option %s", name)
		case takes != nil && !slices.Contains(takes, name):
			return fmt.Errorf("does not take the option %s, only %s", name, strings.Join(takes, ", "))
		}
		given = append(given, name)
		if err := write(to); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Sets is what an option writes that takes every value.
func Sets[T any](write func(*T)) func(*T) error {
	return func(to *T) error {
		write(to)
		return nil
	}
}

// NotNil returns an error unless ok, for an option whose argument must not be nil.
func NotNil(ok bool) error {
	if !ok {
		return errors.New("is nil")
	}
	return nil
}
