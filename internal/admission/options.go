package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/warning"
)

// Adapter is the side of the protocol on which a policy admits calls.
type Adapter struct {
	Package   string // prefix of panics and of codes in log lines
	Transport telemetry.Transport
}

// Misuse panics: a service that is wired wrongly must not start.
func (a Adapter) Misuse(constructor, what string) {
	panic(a.Package + ": " + constructor + ": " + what)
}

// Error is the error of a method that runs in use; nil for nil.
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

// Settings are the settings that both adapters have.
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

// Option writes to a Config. The zero Option is a mistake.
type Option[C, Own any] struct {
	name  string
	apply func(*Config[C, Own]) error
}

// NewOption makes an option. Errors of apply become a panic that names the
// constructor and the option.
func NewOption[C, Own any](name string, apply func(*Config[C, Own]) error) Option[C, Own] {
	return Option[C, Own]{name, apply}
}

// Configure applies opts to the defaults in own. It panics on an option that
// the constructor does not take or gets twice, and on a value out of range.
func Configure[C, Own any](a Adapter, constructor string, takes []string, own Own, opts []Option[C, Own]) *Config[C, Own] {
	c := &Config[C, Own]{Settings: Settings[C]{Missing: Shared, names: new(warning.Names)}, Own: own}
	for i, o := range opts {
		a.Require(o.apply != nil, constructor, "the zero Option is not an option")
		if slices.ContainsFunc(opts[:i], func(p Option[C, Own]) bool { return p.name == o.name }) {
			a.Misuse(constructor, "duplicate option "+o.name)
		}
		if !slices.Contains(takes, o.name) {
			a.Misuse(constructor, "does not take the option "+o.name+", only "+strings.Join(takes, ", "))
		}
		if err := o.apply(c); err != nil {
			a.Misuse(constructor, o.name+": "+err.Error())
		}
	}
	c.unobserved = c.Observe == nil && slices.Contains(takes, "WithObserver")
	return c
}

// NotNil is the error of an option whose argument is nil.
func NotNil(ok bool) error {
	if !ok {
		return errors.New("is nil")
	}
	return nil
}

// The treatments of calls without a key, beside a status of the answer. They are no status of
// either protocol.
const (
	Shared = 1000 + iota // charge the key of all calls without one
	Skip                 // let the call pass, not limited
)

// Options makes the options that both adapters have.
type Options[C, Own any] struct{}

// Name sets the name of the policy.
func (Options[C, Own]) Name(name string) Option[C, Own] {
	return NewOption("WithName", func(c *Config[C, Own]) error {
		c.Name = name
		return CheckName(name)
	})
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
func (Options[C, Own]) Cost(cost func(C) int64) Option[C, Own] {
	return NewOption("WithCost", func(c *Config[C, Own]) error {
		c.Cost = cost
		return NotNil(cost != nil)
	})
}

// FailOpen lets undecided calls pass.
func (Options[C, Own]) FailOpen() Option[C, Own] {
	return NewOption("WithFailOpen", func(c *Config[C, Own]) error {
		c.FailOpen = true
		return nil
	})
}

// MissingKey sets the treatment of calls without a key. least and most are the statuses that an
// answer may have.
func (Options[C, Own]) MissingKey(treatment, least, most int) Option[C, Own] {
	return NewOption("WithMissingKey", func(c *Config[C, Own]) error {
		c.Missing = treatment
		if treatment != Shared && treatment != Skip && (treatment < least || treatment > most) {
			return fmt.Errorf("is %d, want Shared, Skip, or a status from %d to %d", treatment, least, most)
		}
		return nil
	})
}

// Observer sets the function that gets the events.
func (Options[C, Own]) Observer(observe func(telemetry.Event)) Option[C, Own] {
	return NewOption("WithObserver", func(c *Config[C, Own]) error {
		c.Observe = observe
		return NotNil(observe != nil)
	})
}

// LeaseInContext makes LeaseFrom return the lease.
func (Options[C, Own]) LeaseInContext() Option[C, Own] {
	return NewOption("WithLeaseInContext", func(c *Config[C, Own]) error {
		c.LeaseInContext = true
		return nil
	})
}
