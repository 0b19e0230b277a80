package rules

import (
	"cmp"
	"fmt"
	"log/slog"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/option"
)

// Option configures a set of rules. An option that is given twice is an error.
type Option struct {
	name  string
	apply func(*Rules) error
}

func (o Option) split() (string, func(*Rules) error) { return o.name, o.apply }

// WithApp names the application of this instance, for the Apps of a rule.
func WithApp(name string) Option {
	return Option{"WithApp", option.Sets(func(r *Rules) { r.app = name })}
}

// WithLimit sets the limit of rule until it has been read from Redis, and while there is no such
// rule for this application. Without Redis each instance decides with its share, as of other limits.
// Set one for each rule that the application needs: until Redis has been read, rules without one
// deny, with the Reason [algo.Overload].
func WithLimit(rule string, limit algo.Spec) Option {
	return Option{fmt.Sprintf("WithLimit of %q", rule), func(r *Rules) error {
		r.limits[rule] = limit
		return cmp.Or(checkName(rule), validate(limit))
	}}
}

// WithUnknownDenied makes the limiters of rules that do not exist deny
// everything, with the Reason [algo.Overload]. By default, once Redis has been read, they
// admit everything, with the Source [algo.SourceOff]. Both log it once.
func WithUnknownDenied() Option {
	return Option{"WithUnknownDenied", option.Sets(func(r *Rules) { r.denyUnknown = true })}
}

// WithLogger sets where failures are logged. The default is slog.Default.
func WithLogger(l *slog.Logger) Option {
	return Option{"WithLogger", func(r *Rules) error {
		r.logger = l
		return option.NotNil(l != nil)
	}}
}
