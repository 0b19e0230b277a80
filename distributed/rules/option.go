package rules

import (
	"errors"
	"fmt"
	"log/slog"
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

// WithUnknownDenied makes the limiters of rules that do not exist deny
// everything, with the Reason [algo.Overload]. By default they admit
// everything, with the Source [algo.SourceOff]. Both are logged, once.
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
	return nil
}
