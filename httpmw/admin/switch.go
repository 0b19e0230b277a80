package admin

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// SwitchOff lifts the limit until a time: every key is admitted that is not blocked. A limiter of
// package rules is off in all instances, after a restart too; any other one in this process, until
// its restart. reason is for the page and the log.
func (c *Controlled) SwitchOff(ctx context.Context, until time.Time, reason string) error {
	return c.onOff.SwitchOff(ctx, until, reason)
}

// SwitchOn puts the limit in force again, where SwitchOff lifts it.
func (c *Controlled) SwitchOn(ctx context.Context) error { return c.onOff.SwitchOn(ctx) }

// SwitchedOff reports whether the limit is off, until when, and why.
func (c *Controlled) SwitchedOff() (off bool, until time.Time, reason string) {
	return c.onOff.SwitchedOff()
}

// localSwitch is a switch of this process.
type localSwitch struct {
	*algo.Switch
	last atomic.Pointer[lift]
}

type lift struct {
	until  time.Time
	reason string
}

// SwitchOff switches the limit off in this process.
func (l *localSwitch) SwitchOff(_ context.Context, until time.Time, reason string) error {
	l.last.Store(&lift{until, reason})
	l.OffUntil(until)
	return nil
}

// SwitchOn switches the limit on in this process.
func (l *localSwitch) SwitchOn(context.Context) error {
	l.On()
	return nil
}

// SwitchedOff reports whether the limit is off in this process. Like a decision it logs that once an hour.
func (l *localSwitch) SwitchedOff() (off bool, until time.Time, reason string) {
	if l.IsOn() {
		return false, until, ""
	}
	_, _ = l.Choose(context.Background(), "") // logs
	if last := l.last.Load(); last != nil {
		until, reason = last.until, last.reason
	}
	return true, until, reason
}

// switcherOf returns the switcher that lifts all of l, nil if there is none.
func switcherOf(l algo.Limiter) switcher {
	for {
		if s, ok := l.(switcher); ok {
			return s
		}
		w, ok := l.(algo.Wrapper)
		if !ok || len(w.Unwrap()) != 1 {
			return nil
		}
		l = w.Unwrap()[0]
	}
}

// lifted is a limit that is off, with the blocks that Redis has: they deny every cost, 0 too.
type lifted struct{ own blocker }

// Acquire denies a blocked key, and charges nothing. Without an answer of Redis no key is blocked.
func (l lifted) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	look, err := l.own.Acquire(ctx, key, 0)
	if err == nil && !look.Allowed && look.Source != algo.SourceFallback {
		return look, nil
	}
	look.Release(algo.Canceled)
	return algo.Unlimited().Acquire(ctx, key, n)
}

// scopes are where the actions on a policy hold.
type scopes struct {
	Reset  string `json:"reset"`
	Block  string `json:"block"`
	Adjust string `json:"adjust"`
	Switch string `json:"switch"`
}

const (
	thisProcess = "process"
	everywhere  = "everywhere"
)

func scopeOf(process bool) string {
	if process {
		return thisProcess
	}
	return everywhere
}
