package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// ErrUnsupported reports an action that a limiter has no means for.
var ErrUnsupported = errors.New("admin: the limiter cannot do that")

// Controlled is a limiter that an operator can act upon; see [Control].
type Controlled struct {
	// Switch has On, Off and IsOn. While it is off everything is admitted, blocked keys too.
	*algo.Switch
	limiter algo.Limiter
	blocked blocklist
}

// Control wraps l, which it asks for every key that is not blocked, with a kill
// switch and a list of blocked keys. It costs one atomic load, and a look into
// a map while a key is blocked. It panics if l is nil.
func Control(l algo.Limiter) *Controlled {
	if l == nil {
		panic("admin: Control: the limiter is nil")
	}
	c := &Controlled{limiter: l}
	c.Switch = algo.NewSwitch(algo.ByKey(c.choose))
	return c
}

// ChooseLimiter returns the limiter that decides about key now; see [algo.Chooser].
func (c *Controlled) ChooseLimiter(ctx context.Context, key string) algo.Limiter {
	if !c.IsOn() {
		return algo.Unlimited()
	}
	return c.choose(ctx, key)
}

func (c *Controlled) choose(_ context.Context, key string) algo.Limiter {
	if b := c.blocked.find(key); b != nil {
		return b
	}
	return c.limiter
}

// OccupiesSlot answers for the limiter: what denies a blocked key holds nothing.
func (c *Controlled) OccupiesSlot() bool { return algo.OccupiesSlot(c.limiter) }

// Describe forwards to the limiter.
func (c *Controlled) Describe() (algo.Description, bool) { return algo.Describe(c.limiter) }

// SetSpec applies s to the limiter; see [algo.Spec.Apply].
func (c *Controlled) SetSpec(s algo.Spec) error { return s.Apply(c.limiter) }

// Ban denies every cost of key for d, more than 0 and at most 365 days. A limiter
// on Redis bans the key itself, for all instances. Any other ban holds in this
// process, for up to 1000 keys at a time; a second Ban replaces the first.
func (c *Controlled) Ban(ctx context.Context, key string, d time.Duration) error {
	if d <= 0 || d > longestBan {
		return fmt.Errorf("admin: ban is %v, want more than 0 and at most %v", d, longestBan)
	}
	if own, ok := c.limiter.(blocker); ok {
		return own.Ban(ctx, key, d)
	}
	return c.blocked.add(key, &blocked{time.Now().Add(d), c.limiter})
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

// Blocked counts the keys that are blocked in this process.
func (c *Controlled) Blocked() int { return c.blocked.len() }

type (
	blocker interface {
		Ban(ctx context.Context, key string, d time.Duration) error
	}
	switcher interface {
		On()
		Off()
		IsOn() bool
	}
	resetter interface{ Reset(key string) }
	remote   interface {
		Reset(ctx context.Context, key string) error
	}
)

// abilities is what can be done to a limiter. A nil one cannot be done.
type abilities struct {
	reset   func(ctx context.Context, key string) error
	block   blocker
	onOff   switcher
	process bool // a block holds in this process only
}

func abilitiesOf(l algo.Limiter) (a abilities) {
	switch l.(type) {
	case resetter, remote:
		a.reset = func(ctx context.Context, key string) error { return reset(ctx, l, key) }
	}
	a.block, _ = l.(blocker)
	a.onOff, _ = l.(switcher)
	if c, ok := l.(*Controlled); ok {
		_, own := c.limiter.(blocker)
		a.process = !own
	}
	return a
}

// reset forgives key what it owes to l.
func reset(ctx context.Context, l algo.Limiter, key string) error {
	switch l := l.(type) {
	case resetter:
		l.Reset(key)
		return nil
	case remote:
		return l.Reset(ctx, key)
	}
	return ErrUnsupported
}
