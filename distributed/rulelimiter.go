package distributed

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/algo"
)

// Limiter returns the limiter of a rule, whether it exists yet or not: it
// follows what becomes of the rule.
func (r *Rules) Limiter(rule string) algo.Limiter { return &ruleLimiter{r, rule} }

type ruleLimiter struct {
	rules *Rules
	name  string
}

// find returns the limiter that is in force for key, nil if there is none.
func (l *ruleLimiter) find(key string) (limiter algo.Limiter, off bool) {
	g := (*l.rules.current.Load())[l.name]
	if g == nil || len(g.rule.Apps) > 0 && !slices.Contains(g.rule.Apps, l.rules.app) {
		return nil, false
	}
	if g.rule.Mode == Disabled {
		return nil, true
	}
	if o := g.overrides[key]; o != nil {
		return o, false
	}
	return g.limiter, false
}

// Acquire decides by the rule that is in force now.
func (l *ruleLimiter) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	limiter, off := l.find(key)
	switch {
	case limiter != nil:
		return limiter.Acquire(ctx, key, n)
	case n < 0:
		return algo.Lease{}, fmt.Errorf("distributed: rule %q: %w: n is %d, want 0 or more", l.name, algo.ErrCost, n)
	case off || n == 0 || !l.rules.denyUnknown:
		return algo.NewLease(algo.Decision{Allowed: true, Source: algo.SourceOff}, nil, algo.Handle{}), nil
	}
	d := algo.Decision{Reason: algo.Overload, Source: algo.SourceOff, RetryAfter: l.rules.poll}
	return algo.NewLease(d, nil, algo.Handle{}), nil
}

// Describe says what the rule promises now, for keys that it does not override.
func (l *ruleLimiter) Describe() (algo.Description, bool) {
	g := (*l.rules.current.Load())[l.name]
	if g == nil || g.rule.Mode == Disabled {
		return algo.Description{}, false
	}
	return algo.Describe(g.limiter)
}
