package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/rules"
)

// ErrUnsupported reports an action that a limiter has no means for.
var ErrUnsupported = errors.New("admin: the limiter cannot do that")

// Controlled is a limiter that an operator can act upon; see [Control].
type Controlled struct {
	limiter  algo.Limiter
	local    *localSwitch // over limiter
	onOff    switcher     // beneath, if it switches all of limiter off itself; otherwise local
	own      blocker      // beneath, if it bans keys itself
	rule     adjuster     // beneath, if it adjusts the limits of keys itself
	blocked  blocklist
	adjusted blocklist
	callers  callers
}

// Control wraps l, which it asks for every key that is not blocked, with a kill
// switch, a list of blocked keys and one of keys with another limit. It costs a hash of the key and
// six atomic loads, and a lookup in a map while a list has keys. It takes 100 KB, and
// the keys that the page shows: at most 1024 of up to 512 bytes. It panics if l is nil.
func Control(l algo.Limiter) *Controlled {
	if l == nil {
		panic("admin: Control: the limiter is nil")
	}
	local := &localSwitch{Switch: algo.NewSwitch(l)}
	c := &Controlled{limiter: l, local: local, onOff: local}
	if s := switcherOf(l); s != nil {
		c.onOff = s
	}
	for one := range algo.Walk(l) {
		if own, ok := one.(blocker); ok {
			c.own = own
		}
		if rule, ok := one.(adjuster); ok {
			c.rule = rule
		}
	}
	return c
}

// Choose returns the limiter that decides about key now; see [algo.Chooser].
func (c *Controlled) Choose(_ context.Context, key string) (algo.Limiter, error) {
	c.callers.note(key)
	return c.choose(key), nil
}

// Unwrap returns the switch over the limiter; see [algo.Wrapper].
func (c *Controlled) Unwrap() []algo.Limiter { return []algo.Limiter{c.local.Switch} }

// choose is Choose for an operator, whose look at a key is not a request
// of it.
func (c *Controlled) choose(key string) algo.Limiter {
	off, _, _ := c.onOff.SwitchedOff()
	if c.own == nil || off { // otherwise the limiter knows of the block, and whether it was lifted elsewhere
		if b := c.blocked.find(key); b != nil {
			return b
		}
	}
	switch {
	case off && c.own != nil:
		return lifted{c.own}
	case off:
		return algo.Unlimited()
	}
	if b := c.adjusted.find(key); b != nil {
		return b.instead
	}
	return c.limiter
}

// Acquire asks the limiter that decides about key now.
func (c *Controlled) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	c.callers.note(key)
	return c.choose(key).Acquire(ctx, key, n)
}

// Ban denies every cost of key for d, which is more than 0 and not more than
// 365 days, whether the limit is on or off. A limiter on Redis bans the key
// itself, for all instances; any other ban holds in this process, for up to 1000 keys at a time. A second Ban replaces the first.
func (c *Controlled) Ban(ctx context.Context, key string, d time.Duration) error {
	if d <= 0 || d > longestBan {
		return fmt.Errorf("admin: ban is %v, want more than 0, at most %v", d, longestBan)
	}
	if c.own == nil {
		return c.blocked.add(newBlock(key, d, c.limiter))
	}
	var err error
	if _, has := c.Adjusted()[key]; has { // of which the ban would know nothing
		err = c.Adjust(ctx, key, rules.Temporary{})
	}
	if err == nil {
		err = c.own.Ban(ctx, key, d)
	}
	if err == nil {
		_ = c.blocked.add(newBlock(key, d, c.limiter)) // a full list does not make the ban less
	}
	return err
}

// Reset lifts a Ban, and forgets the debt of key. A limiter without Reset, such as
// one of units in flight, returns [ErrUnsupported] unless there was a ban to lift.
func (c *Controlled) Reset(ctx context.Context, key string) error {
	lifted := c.blocked.remove(key)
	err := reset(ctx, c.limiter, key)
	if lifted && errors.Is(err, ErrUnsupported) {
		return nil
	}
	return err
}

// Refund gives back to key up to n units that it has spent, and returns how many came back; see
// [algo.RateLimiter.Refund]. The error is [errors.ErrUnsupported] if the limiter has no such method.
func (c *Controlled) Refund(ctx context.Context, key string, n int64) (units int64, err error) {
	switch l := c.limiter.(type) {
	case interface {
		Refund(key string, n int64) (int64, error)
	}:
		return l.Refund(key, n)
	case interface {
		Refund(ctx context.Context, key string, n int64) (int64, error)
	}:
		return l.Refund(ctx, key, n)
	}
	return 0, fmt.Errorf("admin: %T refunds only units of leases: %w", c.limiter, errors.ErrUnsupported)
}

// Adjust gives key another limit until t.Until, at most 365 days from now; the zero t takes it away.
// A limiter of package rules does so in all instances; any other limit of a key holds in this
// process, for up to 1000 keys at a time: the key begins afresh, and has its debt from
// before when the limit ends.
func (c *Controlled) Adjust(ctx context.Context, key string, t rules.Temporary) error {
	d := time.Until(t.Until)
	switch {
	case t == rules.Temporary{} && c.rule == nil:
		c.adjusted.remove(key)
		return nil
	case t != rules.Temporary{} && (d <= 0 || d > longestBan):
		return fmt.Errorf("admin: limit of a key until %v, want a time within %v", t.Until, longestBan)
	case c.rule != nil:
		return c.rule.Adjust(ctx, key, t)
	}
	instead, err := t.Limit.New()
	if err != nil {
		return err
	}
	b := newBlock(key, d, c.limiter)
	b.instead, b.note = instead, t.Reason
	return c.adjusted.add(b)
}

// Adjusted returns the keys with another limit.
func (c *Controlled) Adjusted() map[string]rules.Temporary {
	if c.rule != nil {
		return c.rule.Adjusted()
	}
	all := map[string]rules.Temporary{}
	for _, b := range c.adjusted.all() {
		all[b.key] = rules.Temporary{Limit: b.instead.Spec(), Until: b.until, Reason: b.note}
	}
	return all
}

// Unban lifts a Ban. The debt of key stays, except on Redis, where a ban takes its
// place.
func (c *Controlled) Unban(ctx context.Context, key string) error {
	c.blocked.remove(key)
	if c.own == nil {
		return nil
	}
	return reset(ctx, c.limiter, key)
}

// Blocked counts the keys that were blocked through this Control.
func (c *Controlled) Blocked() int { return len(c.blocked.all()) }

type (
	blocker interface {
		algo.Limiter
		Ban(ctx context.Context, key string, d time.Duration) error
	}
	// adjuster is what limiters of package rules are.
	adjuster interface {
		Adjust(ctx context.Context, key string, t rules.Temporary) error
		Adjusted() map[string]rules.Temporary
	}
	// switcher is what limiters of package rules are.
	switcher interface {
		SwitchOff(ctx context.Context, until time.Time, reason string) error
		SwitchOn(ctx context.Context) error
		SwitchedOff() (off bool, until time.Time, reason string)
	}
	resetter interface{ Reset(key string) }
	remote   interface {
		Reset(ctx context.Context, key string) error
	}
)

// abilities are the possible actions on a limiter. A nil one is impossible.
type abilities struct {
	reset   func(ctx context.Context, key string) error
	block   blocker
	unblock func(ctx context.Context, key string) error
	adjust  adjuster
	onOff   switcher
	scopes  scopes
}

// controlled is the Control in l, nil if there is none.
func controlled(l algo.Limiter) *Controlled {
	for one := range algo.Walk(l) {
		if c, ok := one.(*Controlled); ok {
			return c
		}
	}
	return nil
}

func abilitiesOf(l algo.Limiter) (a abilities) {
	for one := range algo.Walk(l) {
		switch one.(type) {
		case *Controlled: // it can if a limiter beneath can
		case resetter, remote:
			if _, everywhere := one.(remote); everywhere || a.scopes.Reset == "" {
				a.scopes.Reset = scopeOf(!everywhere)
			}
			a.reset = func(ctx context.Context, key string) error { return reset(ctx, l, key) }
		}
	}
	if c := controlled(l); c != nil {
		a.block, a.unblock, a.onOff = c, c.Unban, c
		if !algo.About(l).NeedsRelease {
			a.adjust = c
		}
		_, alone := c.onOff.(*localSwitch)
		a.scopes.Block, a.scopes.Adjust, a.scopes.Switch = scopeOf(c.own == nil), scopeOf(c.rule == nil), scopeOf(alone)
		return a
	}
	a.block, _ = l.(blocker)
	a.adjust, _ = l.(adjuster)
	a.onOff, _ = l.(switcher)
	a.scopes.Block, a.scopes.Adjust, a.scopes.Switch = everywhere, everywhere, everywhere
	if s, ok := l.(*algo.Switch); ok {
		a.onOff, a.scopes.Switch = &localSwitch{Switch: s}, thisProcess
	}
	if a.block != nil {
		a.unblock = a.reset // which lifts a ban, see WithPolicy
	}
	return a
}

// reset forgives the debt of key in l and the limiters beneath it, and lifts their bans.
func reset(ctx context.Context, l algo.Limiter, key string) error {
	var errs []error
	found := false
	for one := range algo.Walk(l) {
		switch one := one.(type) {
		case *Controlled:
			one.blocked.remove(key)
		case resetter:
			one.Reset(key)
			found = true
		case remote:
			errs = append(errs, one.Reset(ctx, key))
			found = true
		}
	}
	if !found {
		return ErrUnsupported
	}
	return errors.Join(errs...)
}
