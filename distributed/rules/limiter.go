package rules

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// Limiter returns the limiter of a rule, whether the rule exists yet or not. It follows the
// rule's changes. The name is kept until the rules are gone: take none from requests.
func (r *Rules) Limiter(rule string) algo.Limiter { return (*limiter)(r.entry(rule)) }

type limiter entry

// Choose returns the limiter in force for key; see [algo.Chooser].
func (l *limiter) Choose(_ context.Context, key string) (algo.Limiter, error) {
	chosen, err := (*entry)(l).limiter(func(r *Rule) algo.Spec { return r.limitOf(key) })
	if chosen != nil || err != nil {
		return chosen, err
	}
	r := l.rules
	if r.loaded.Load() && l.reported.CompareAndSwap(false, true) {
		r.logger.Warn("rules: no rule for this application; put one, or see WithUnknownDenied",
			"key", r.keys[0], "rule", l.name, "app", r.app, "denied", r.denyUnknown)
	}
	if r.denyUnknown {
		return denied{}, nil
	}
	return algo.Unlimited(), nil
}

// Acquire decides by the rule in force.
func (l *limiter) Acquire(ctx context.Context, key string, n int64) (lease algo.Lease, err error) {
	if n < 0 {
		return lease, fmt.Errorf("rules: rule %q: %w: n is %d, want 0 or more", l.name, algo.ErrCost, n)
	}
	chosen, err := l.Choose(ctx, key)
	if err != nil {
		return lease, err
	}
	return chosen.Acquire(ctx, key, n)
}

// About is about the rule in force, for keys without a limit of their own.
func (l *limiter) About() algo.Description {
	if chosen, _ := (*entry)(l).limiter(func(r *Rule) algo.Spec { return r.Limit }); chosen != nil {
		return algo.About(chosen)
	}
	return algo.Description{Off: true}
}

// entry is the rule of a name, with the limiters in use. Keys with equal limits share one.
type entry struct {
	rules   *Rules
	name    string
	version int64 // and text: as Redis has them; guarded by the turn
	text    string

	mu   sync.Mutex
	rule Rule // in force; without a version there is none
	made map[algo.Spec]*distributed.Limiter

	reported atomic.Bool // that there is no rule
}

// entry returns the entry of a name.
func (r *Rules) entry(name string) *entry {
	e, _ := r.known.LoadOrStore(name, &entry{rules: r, name: name, made: map[algo.Spec]*distributed.Limiter{}})
	return e.(*entry)
}

// limiter returns the limiter of a limit of the rule, which it makes for the first decision; nil
// if there is no rule for this application.
func (e *entry) limiter(limit func(*Rule) algo.Spec) (_ algo.Limiter, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.rule.Version == 0 || len(e.rule.Apps) > 0 && !slices.Contains(e.rule.Apps, e.rules.app):
		return nil, nil
	case e.rule.Mode == ModeOff:
		return algo.Unlimited(), nil
	}
	spec := limit(&e.rule)
	l := e.made[spec]
	if l == nil {
		if l, err = e.rules.store.Limiter(namesOf[spec.Algorithm]+e.rules.name+":"+e.name, spec); err != nil {
			return nil, err
		}
		e.made[spec] = l
	}
	if e.rule.Mode == ModeShadow {
		return algo.Shadow(l), nil
	}
	return l, nil
}

// closeAfter is when a limiter that is not in force any more is closed: a decision that has
// just chosen it is not disturbed.
const closeAfter = 3 * time.Second

// set puts a version of the rule in force.
func (e *entry) set(next Rule) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rule = next
	used := slices.Collect(maps.Values(next.limits()))
	for spec, l := range e.made {
		if !slices.Contains(used, spec) {
			delete(e.made, spec)
			time.AfterFunc(closeAfter, func() { _ = l.Close() })
		}
	}
}

// denied denies in place of a rule that does not exist.
type denied struct{}

func (denied) Acquire(_ context.Context, _ string, n int64) (algo.Lease, error) {
	d := algo.Decision{Allowed: n == 0, Source: algo.SourceOff}
	if n > 0 {
		d.Reason, d.RetryAfter = algo.Overload, time.Second
	}
	return algo.NewLease(d, nil, algo.Handle{}), nil
}
