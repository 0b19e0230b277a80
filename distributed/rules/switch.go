package rules

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-go/sluice/internal/warning"
)

// SwitchOff puts the rule in [ModeOff] in all instances, with reason, until the time until; the zero
// time never ends it. Under [Rules.Over] the rule need not exist. A rule in [ModeShadow] stays as it
// is, because it denies nothing. The errors are those of [Limiter.Adjust].
func (l *Limiter) SwitchOff(ctx context.Context, until time.Time, reason string) error {
	return l.change(ctx, func(r *Rule) bool {
		if r.mode() == ModeShadow { // which would be lost
			return false
		}
		r.Mode, r.Until, r.Reason = ModeOff, until, reason
		return true
	})
}

// SwitchOn ends [ModeOff] in all instances. For a rule without a limit, which must stay in ModeOff to be
// valid, it sets Until.
func (l *Limiter) SwitchOn(ctx context.Context) error {
	return l.change(ctx, func(r *Rule) bool {
		was := r.mode() == ModeOff
		if r.Mode == ModeOff {
			r.Mode, r.Until, r.Reason = ModeEnforce, time.Time{}, ""
		}
		if len(r.limits()) == 0 {
			r.Mode, r.Until = ModeOff, time.Now()
		}
		return was
	})
}

// SwitchedOff reports whether the rule is in [ModeOff], as known in this instance, until when, and why.
// Like a decision it logs that once an hour.
func (l *Limiter) SwitchedOff() (off bool, until time.Time, reason string) {
	e := l.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.applies() || e.rule.mode() != ModeOff {
		return false, until, ""
	}
	e.remind()
	return true, e.rule.Until, e.rule.Reason
}

// change applies f to the rule and stores it, unless f reports that it has changed nothing.
func (l *Limiter) change(ctx context.Context, f func(*Rule) bool) error {
	for {
		rule, err := l.entry.rules.Get(ctx, l.entry.name)
		if err != nil && (l.over == nil || !errors.Is(err, ErrNoRule)) {
			return err
		}
		if !f(&rule) {
			return nil
		}
		err = l.entry.rules.Put(ctx, l.entry.name, rule)
		// A new rule may have replaced one that was stored in between: repeat the change.
		if !errors.Is(err, ErrRuleChanged) && (err != nil || rule.Version != 0) {
			return err
		}
	}
}

// mode returns the mode in force now.
func (r *Rule) mode() Mode {
	if !r.Until.IsZero() && !time.Now().Before(r.Until) {
		return ModeEnforce
	}
	return r.Mode
}

// remind logs once an hour that the rule is off.
func (e *entry) remind() {
	if !e.pause.Over(time.Hour) {
		return
	}
	args := []any{"code", "algo.switched_off", "key", e.rules.keys[0], "rule", warning.Clip(e.name, warning.Longest),
		"do", "switch it on, unless that is intended", "reason", warning.Clip(e.rule.Reason, warning.Longest)}
	if !e.rule.Until.IsZero() {
		args = append(args, "until", e.rule.Until.UTC().Format(time.RFC3339))
	}
	e.rules.logger.Warn("rules: a limit is switched off and denies nothing", args...)
}
