package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/option"
	"github.com/sluice-go/sluice/internal/warning"
)

// Adapter describes the adapter for which a policy admits calls.
type Adapter struct {
	Package   string // prefix of panics and of codes in log lines
	Transport telemetry.Transport
}

// Misuse panics, because a misconfigured service must not start.
func (a Adapter) Misuse(constructor, what string) {
	panic(a.Package + ": " + constructor + ": " + what)
}

// Error returns the error of a method that runs after the start; nil for nil.
func (a Adapter) Error(of string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", a.Package, of, err)
}

// Require calls Misuse unless ok.
func (a Adapter) Require(ok bool, constructor, what string) {
	if !ok {
		a.Misuse(constructor, what)
	}
}

// Settings holds the settings that both adapters have.
type Settings[C any] struct {
	Name           string // "": see defaultName
	Cost           func(C) int64
	FailOpen       bool // calls that could not be decided pass
	Missing        int  // of calls without a key: Shared, Skip, or the status of the answer
	Observe        func(telemetry.Event)
	LeaseInContext bool
	names          *warning.Names // of the policies that are made with these settings
	unobserved     bool           // WithObserver is possible, but not given
}

// Config is Settings and the settings of one adapter.
type Config[C, Own any] struct {
	Settings[C]
	Own Own
}

// Configure applies opts, which split takes apart, to the defaults in own. It panics on an option that the
// constructor does not take or gets twice, and on a value out of range.
func Configure[O, C, Own any](a Adapter, constructor string, takes []string, own Own, opts []O, split func(O) (string, func(*Config[C, Own]) error)) *Config[C, Own] {
	c := &Config[C, Own]{Settings: Settings[C]{Missing: Shared, names: new(warning.Names)}, Own: own}
	if err := option.Apply(c, opts, split, takes); err != nil {
		a.Misuse(constructor, err.Error())
	}
	c.unobserved = c.Observe == nil && slices.Contains(takes, "WithObserver")
	return c
}

// The treatments of calls without a key, beside a status of the answer. They are no status of
// either protocol.
const (
	Shared = 1000 + iota // charge the key of all calls without one
	Skip                 // let the call pass, not limited
)

// Options makes the options that both adapters have, as a name and a function that applies it.
type Options[C, Own any] struct{}

// Name sets the name of the policy.
func (Options[C, Own]) Name(name string) (string, func(*Config[C, Own]) error) {
	return "WithName", func(c *Config[C, Own]) error {
		c.Name = name
		return CheckName(name)
	}
}

const (
	maxName  = 64
	nameText = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-"
)

// CheckName accepts names that need no escaping in any protocol.
func CheckName(name string) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("%q has %d bytes, want 1 to %d", name, len(name), maxName)
	case strings.Trim(name, nameText) != "":
		return fmt.Errorf("%q has characters other than letters, digits, dot, underscore and hyphen", name)
	}
	return nil
}

// Cost sets the cost function.
func (Options[C, Own]) Cost(cost func(C) int64) (string, func(*Config[C, Own]) error) {
	return "WithCost", func(c *Config[C, Own]) error {
		c.Cost = cost
		return option.NotNil(cost != nil)
	}
}

// FailOpen passes undecided calls.
func (Options[C, Own]) FailOpen() (string, func(*Config[C, Own]) error) {
	return "WithFailOpen", option.Sets(func(c *Config[C, Own]) { c.FailOpen = true })
}

// MissingKey sets the treatment of calls without a key. least and most bound the status of an
// answer.
func (Options[C, Own]) MissingKey(treatment, least, most int) (string, func(*Config[C, Own]) error) {
	return "WithMissingKey", func(c *Config[C, Own]) error {
		c.Missing = treatment
		if treatment != Shared && treatment != Skip && (treatment < least || treatment > most) {
			return fmt.Errorf("is %d, want Shared, Skip, or a status from %d to %d", treatment, least, most)
		}
		return nil
	}
}

// Observer sets the function that gets the events.
func (Options[C, Own]) Observer(observe func(telemetry.Event)) (string, func(*Config[C, Own]) error) {
	return "WithObserver", func(c *Config[C, Own]) error {
		c.Observe = observe
		return option.NotNil(observe != nil)
	}
}

// LeaseInContext makes LeaseFrom return the lease.
func (Options[C, Own]) LeaseInContext() (string, func(*Config[C, Own]) error) {
	return "WithLeaseInContext", option.Sets(func(c *Config[C, Own]) { c.LeaseInContext = true })
}
