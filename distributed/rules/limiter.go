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
	"github.com/sluice-go/sluice/internal/warning"
)

// Limiter returns the limiter of rule, which need not exist yet. It follows the rule's changes;
// [WithLimit] applies until the rule is known. The rules keep the name until they are closed, so
// take none from requests.
func (r *Rules) Limiter(rule string) *Limiter { return &Limiter{r.entry(rule), nil} }

// Over returns a limiter that decides by rule for keys with a limit of their own, and by l for
// all others, also while there is no such rule. The debt that a key has in l stays there.
func (r *Rules) Over(rule string, l algo.Limiter) *Limiter { return &Limiter{r.entry(rule), l} }

// Limiter decides by a rule; see [Rules.Limiter] and [Rules.Over].
type Limiter struct {
	entry *entry
	over  algo.Limiter // nil: the rule decides about all keys
}

// Choose returns the limiter in force for key; see [algo.Chooser].
func (l *Limiter) Choose(_ context.Context, key string) (algo.Limiter, error) {
	chosen, err := l.entry.limiter(func(r *Rule) algo.Spec {
		spec, own := r.limitOf(key)
		if l.over != nil && !own {
			return algo.Spec{}
		}
		return spec
	}, l.over == nil)
	if chosen != nil || err != nil {
		return chosen, err
	}
	if l.over != nil {
		return l.over, nil
	}
	r := l.entry.rules
	if !r.loaded.Load() || l.entry.unread.Load() {
		return denied{}, nil
	}
	if l.entry.reported.CompareAndSwap(false, true) {
		r.logger.Warn("rules: no rule for this application; put one, or see WithLimit and WithUnknownDenied",
			"key", r.keys[0], "rule", l.entry.name, "app", r.app, "denied", r.denyUnknown)
	}
	if r.denyUnknown {
		return denied{}, nil
	}
	return algo.Unlimited(), nil
}

// Acquire decides by the rule in force.
func (l *Limiter) Acquire(ctx context.Context, key string, n int64) (lease algo.Lease, err error) {
	if n < 0 {
		return lease, fmt.Errorf("rules: rule %q: %w: n is %d, want 0 or more", l.entry.name, algo.ErrCost, n)
	}
	chosen, err := l.Choose(ctx, key)
	if err != nil {
		return lease, err
	}
	return chosen.Acquire(ctx, key, n)
}

// About describes the rule in force, for keys without a limit of their own.
func (l *Limiter) About() algo.Description {
	if l.over != nil {
		d := algo.About(l.over)
		off, _, _ := l.SwitchedOff()
		d.Off = d.Off || off
		return d
	}
	if chosen, _ := l.entry.limiter(func(r *Rule) algo.Spec { return r.Limit }, true); chosen != nil {
		return algo.About(chosen)
	}
	return algo.Description{Off: true}
}

// Unwrap returns the limiter beneath [Rules.Over]; see [algo.Wrapper].
func (l *Limiter) Unwrap() []algo.Limiter {
	if l.over == nil {
		return nil
	}
	return []algo.Limiter{l.over}
}

// Adjust gives key another limit in all instances until t.Until; the zero t removes that
// limit. The key keeps what it has spent, as with [Rule.Overrides]. Adjust also removes limits
// that have ended. It returns the errors of [Rules.Put], and of [Rules.Get] if the rule must exist.
func (l *Limiter) Adjust(ctx context.Context, key string, t Temporary) error {
	return l.change(ctx, func(r *Rule) bool { return r.adjust(key, t) })
}

// adjust sets the limit of key and removes those that have ended. It reports whether r has
// changed.
func (r *Rule) adjust(key string, t Temporary) bool {
	was, had := r.Temporary[key]
	next := map[string]Temporary{}
	for k, t := range r.Temporary {
		if k != key && time.Now().Before(t.Until) {
			next[k] = t
		}
	}
	switch {
	case t != Temporary{}:
		next[key] = t
	case had && len(next)+len(r.Overrides) == 0 && r.Limit == algo.Spec{} && r.Mode == ModeEnforce: // a rule that says nothing is invalid
		next[key] = Temporary{Limit: was.Limit, Until: time.Now()}
	}
	r.Temporary = next
	return had || t != Temporary{}
}

// Adjusted returns the temporary limits in force, as known in this instance.
func (l *Limiter) Adjusted() map[string]Temporary {
	l.entry.mu.Lock()
	defer l.entry.mu.Unlock()
	now := maps.Clone(l.entry.rule.Temporary)
	maps.DeleteFunc(now, func(_ string, t Temporary) bool { return !time.Now().Before(t.Until) })
	return now
}

// entry is the rule of a name, with the limiters in use. Keys with equal limits share one.
type entry struct {
	rules   *Rules
	name    string
	version int64 // version and text are as in Redis; Rules.turn guards them
	text    string

	mu   sync.Mutex
	rule Rule // in force; without a version there is none
	made map[algo.Spec]*distributed.Limiter

	reported atomic.Bool   // the log has named the missing rule
	unread   atomic.Bool   // there is a rule, but no valid version of it
	pause    warning.Pause // of the warning that the rule is off
}

func (r *Rules) entry(name string) *entry {
	e, _ := r.known.LoadOrStore(name, &entry{rules: r, name: name, made: map[algo.Spec]*distributed.Limiter{}})
	return e.(*entry)
}

// applies reports whether the rule exists for this application.
func (e *entry) applies() bool {
	return e.rule.Version != 0 && (len(e.rule.Apps) == 0 || slices.Contains(e.rule.Apps, e.rules.app))
}

// limiter returns the limiter of limit(rule) or, if there is no rule for this application and own is
// set, of WithLimit; nil without either. It makes the limiter for the first decision.
func (e *entry) limiter(limit func(*Rule) algo.Spec, own bool) (_ algo.Limiter, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var spec algo.Spec
	there, mode := e.applies(), e.rule.mode()
	switch {
	case there && mode == ModeOff:
		e.remind()
		return algo.Unlimited(), nil
	case there:
		spec = limit(&e.rule)
	case own:
		spec = e.rules.limits[e.name]
	}
	if spec == (algo.Spec{}) {
		return nil, nil
	}
	l := e.made[spec]
	if l == nil {
		if l, err = e.rules.store.Limiter(namesOf[spec.Algorithm]+e.rules.name+":"+e.name, spec); err != nil {
			return nil, err
		}
		e.made[spec] = l
	}
	if there && mode == ModeShadow {
		return algo.Shadow(l), nil
	}
	return l, nil
}

// closeAfter delays the closing of a replaced limiter, so that decisions that have just chosen
// it still succeed.
const closeAfter = 3 * time.Second

// set puts next in force.
func (e *entry) set(next Rule) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.rule.mode() != next.mode() {
		e.pause.Reset()
	}
	e.rule = next
	used := slices.Collect(maps.Values(next.limits()))
	for spec, l := range e.made {
		if !slices.Contains(used, spec) {
			delete(e.made, spec)
			time.AfterFunc(closeAfter, func() { _ = l.Close() })
		}
	}
}

// denied denies in place of a rule that does not exist or is not known yet.
type denied struct{}

func (denied) Acquire(_ context.Context, _ string, n int64) (algo.Lease, error) {
	d := algo.Decision{Allowed: n == 0, Source: algo.SourceOff}
	if n > 0 {
		d.Reason, d.RetryAfter = algo.Overload, time.Second
	}
	return algo.NewLease(d, nil, algo.Handle{}), nil
}
