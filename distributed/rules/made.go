package rules

import (
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// limiterID identifies a limiter of a rule, or of one key that it overrides.
type limiterID struct {
	rule, key, algorithm string
	override             bool // of the empty key too
}

func idOf(rule string, spec algo.Spec) limiterID {
	return limiterID{rule: rule, algorithm: algorithmOf(spec)}
}

func overrideID(rule, key string, spec algo.Spec) limiterID {
	return limiterID{rule, key, algorithmOf(spec), true}
}

// madeLimiter is a limiter that rules have used.
type madeLimiter struct {
	*distributed.Limiter
	unused time.Time // since when no rule uses it; zero: one does
}

// limiter returns the limiter of a rule, or of one key that it overrides. An
// existing limiter is changed in use.
func (r *Rules) limiter(id limiterID, rule Rule, spec algo.Spec) (_ algo.Limiter, err error) {
	l := r.limiters[id]
	if l != nil {
		err = spec.Apply(l)
	} else {
		l = new(madeLimiter)
		if l.Limiter, err = r.store.Limiter(namesOf[id.algorithm]+r.name+":"+id.rule, spec); err == nil {
			r.limiters[id] = l
		}
	}
	if err != nil {
		return nil, err
	}
	if rule.Mode == ModeShadow {
		return algo.Shadow(l.Limiter), nil
	}
	return l.Limiter, nil
}

// free closes the limiters that no rule has used for a poll interval: a decision that has
// just chosen one is not disturbed.
func (r *Rules) free(rules map[string]*activeRule) {
	used := map[limiterID]bool{}
	for name, a := range rules {
		used[idOf(name, a.rule.Limit)] = true
		for key, spec := range a.rule.Overrides {
			used[overrideID(name, key, spec)] = true
		}
	}
	for id, l := range r.limiters {
		switch {
		case used[id]:
			l.unused = time.Time{}
		case l.unused.IsZero():
			l.unused = time.Now()
		case time.Since(l.unused) >= r.poll:
			_ = l.Close()
			delete(r.limiters, id)
		}
	}
}
