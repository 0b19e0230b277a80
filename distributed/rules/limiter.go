package rules

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// Limiter returns the limiter of a rule, whether the rule exists yet or not. It
// follows the rule's changes.
func (r *Rules) Limiter(rule string) algo.Limiter { return &limiter{r, rule} }

type limiter struct {
	rules *Rules
	name  string
}

// Choose returns the limiter in force for key; see [algo.Chooser].
func (l *limiter) Choose(_ context.Context, key string) (algo.Limiter, error) {
	return l.choose(key), nil
}

func (l *limiter) choose(key string) algo.Limiter {
	a := (*l.rules.current.Load())[l.name]
	switch {
	case a == nil || len(a.rule.Apps) > 0 && !slices.Contains(a.rule.Apps, l.rules.app):
		if l.rules.denyUnknown {
			return denied(l.rules.poll)
		}
		return algo.Unlimited()
	case a.rule.Mode == ModeOff:
		return algo.Unlimited()
	}
	if o := a.overrides[key]; o != nil {
		return o
	}
	return a.limiter
}

// Acquire decides by the rule in force.
func (l *limiter) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	if n < 0 {
		return algo.Lease{}, fmt.Errorf("rules: rule %q: %w: n is %d, want 0 or more", l.name, algo.ErrCost, n)
	}
	return l.choose(key).Acquire(ctx, key, n)
}

// Describe returns the limit of the rule in force, for keys without an override.
func (l *limiter) Describe() (algo.Description, bool) {
	a := (*l.rules.current.Load())[l.name]
	if a == nil || a.rule.Mode == ModeOff {
		return algo.Description{}, false
	}
	return algo.Describe(a.limiter)
}

// OccupiesSlot reports false: every rule is a limit over time.
func (l *limiter) OccupiesSlot() bool { return false }

// denied denies in place of a rule that does not exist. Its value is the RetryAfter.
type denied time.Duration

func (d denied) Acquire(_ context.Context, _ string, n int64) (algo.Lease, error) {
	answer := algo.Decision{Allowed: true, Source: algo.SourceOff}
	if n > 0 {
		answer = algo.Decision{Reason: algo.Overload, Source: algo.SourceOff, RetryAfter: time.Duration(d)}
	}
	return algo.NewLease(answer, nil, algo.Handle{}), nil
}
