package rules

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sluice-go/sluice/algo"
)

// Option configures a set of rules. An option that is given twice is an error.
type Option struct {
	name  string
	apply func(*Rules)
}

// WithApp names the application of this instance, for the Apps of a rule.
func WithApp(name string) Option {
	return Option{"WithApp", func(r *Rules) { r.app = name }}
}

// WithLimit is the limit of a rule while it is not known: until Redis has been read, and while there
// is no such rule for this application. Without Redis each instance decides with its share of it, as
// of other limits. Give one to each rule that an application cannot do without: before Redis has been
// read, rules without one deny, with the Reason [algo.Overload].
func WithLimit(rule string, limit algo.Spec) Option {
	return Option{fmt.Sprintf("WithLimit of %q", rule), func(r *Rules) { r.limits[rule] = limit }}
}

// WithUnknownDenied makes the limiters of rules that do not exist deny
// everything, with the Reason [algo.Overload]. By default they admit
// everything, with the Source [algo.SourceOff], once Redis has been read. Both are logged, once.
func WithUnknownDenied() Option {
	return Option{"WithUnknownDenied", func(r *Rules) { r.denyUnknown = true }}
}

// WithLogger sets where failures are logged. The default is slog.Default.
func WithLogger(l *slog.Logger) Option {
	return Option{"WithLogger", func(r *Rules) { r.logger = l }}
}

// configure applies opts, each at most once.
func (r *Rules) configure(opts []Option) error {
	given := map[string]bool{}
	for _, o := range opts {
		switch {
		case o.apply == nil:
			return errors.New("the zero Option is not an option")
		case given[o.name]:
			return fmt.Errorf("duplicate option %s", o.name)
		}
		given[o.name] = true
		o.apply(r)
	}
	if r.logger == nil {
		return errors.New("logger is nil")
	}
	for rule, limit := range r.limits {
		if err := cmp.Or(checkName(rule), validate(limit)); err != nil {
			return fmt.Errorf("limit of rule %q: %w", rule, err)
		}
	}
	return nil
}
