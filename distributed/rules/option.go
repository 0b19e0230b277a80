package rules

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Option configures a set of rules. An option that is given twice is an error.
type Option struct {
	name  string
	apply func(*settings) error
}

type settings struct {
	app         string
	poll        time.Duration
	denyUnknown bool
	logger      *slog.Logger
}

// WithApp names the application of this instance, for the Apps of a rule.
func WithApp(name string) Option {
	return Option{"WithApp", func(s *settings) error {
		s.app = name
		return nil
	}}
}

// WithPollInterval sets how often the rules are read without a notification,
// 10 ms to 1 h; the default is 10 s. Each pause is up to a half shorter, so that
// the instances spread.
func WithPollInterval(d time.Duration) Option {
	return Option{"WithPollInterval", func(s *settings) error {
		if s.poll = d; d < 10*time.Millisecond || d > time.Hour {
			return fmt.Errorf("poll interval is %v, want 10ms to 1h", d)
		}
		return nil
	}}
}

// WithUnknownDenied makes the limiters of rules that do not exist deny
// everything, with the Reason [algo.Overload]. By default they admit
// everything, with the Source [algo.SourceOff].
func WithUnknownDenied() Option {
	return Option{"WithUnknownDenied", func(s *settings) error {
		s.denyUnknown = true
		return nil
	}}
}

// WithLogger sets where failures are logged. The default is slog.Default.
func WithLogger(l *slog.Logger) Option {
	return Option{"WithLogger", func(s *settings) error {
		if s.logger = l; l == nil {
			return errors.New("logger is nil")
		}
		return nil
	}}
}

// configure applies opts, each at most once.
func (s *settings) configure(opts []Option) error {
	given := make(map[string]bool, len(opts))
	for _, o := range opts {
		switch {
		case o.apply == nil:
			return errors.New("the zero Option is not an option")
		case given[o.name]:
			return fmt.Errorf("duplicate option %s", o.name)
		}
		given[o.name] = true
		if err := o.apply(s); err != nil {
			return err
		}
	}
	return nil
}
