package rules

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/algo"
)

// Limiter returns the limiter of a rule, whether the rule exists yet or not. It
// follows the rule's changes.
func (r *Rules) Limiter(rule string) algo.Limiter { return &limiter{r, rule} }

type limiter struct {
	rules *Rules
	name  string
}

// find returns the limiter in force for key, nil if there is none.
func (l *limiter) find(key string) (limiter algo.Limiter, off bool) {
	a := (*l.rules.current.Load())[l.name]
	if a == nil || len(a.rule.Apps) > 0 && !slices.Contains(a.rule.Apps, l.rules.app) {
		return nil, false
	}
	if a.rule.Mode == ModeOff {
		return nil, true
	}
	if o := a.overrides[key]; o != nil {
		return o, false
	}
	return a.limiter, false
}

// Acquire decides by the rule in force.
func (l *limiter) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	limiter, off := l.find(key)
	switch {
	case limiter != nil:
		return limiter.Acquire(ctx, key, n)
	case n < 0:
		return algo.Lease{}, fmt.Errorf("rules: rule %q: %w: n is %d, want 0 or more", l.name, algo.ErrCost, n)
	case off || n == 0 || !l.rules.denyUnknown:
		return algo.NewLease(algo.Decision{Allowed: true, Source: algo.SourceOff}, nil, algo.Handle{}), nil
	}
	d := algo.Decision{Reason: algo.Overload, Source: algo.SourceOff, RetryAfter: l.rules.poll}
	return algo.NewLease(d, nil, algo.Handle{}), nil
}

// Describe returns the limit of the rule in force, for keys without an override.
func (l *limiter) Describe() (algo.Description, bool) {
	a := (*l.rules.current.Load())[l.name]
	if a == nil || a.rule.Mode == ModeOff {
		return algo.Description{}, false
	}
	return algo.Describe(a.limiter)
}
