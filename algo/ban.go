package algo

import (
	"context"
	"fmt"
	"time"
)

// Ban bans keys that go on asking after they were denied: for a time that
// doubles from ban to ban, up to a maximum, and is forgotten as slowly as it
// grew. It is for callers that ignore Retry-After, and for guessing attacks.
//
// A key is banned when it was denied for its quota as often as denials says
// within one period, counted from the first such denial. While it is banned,
// everything is denied, whatever the cost and peeks too, with Reason Quota and
// the rest of the ban as RetryAfter, and the limiter is not asked. These
// denials do not count, so a ban ends however hard the caller tries. Neither do
// denials for overload or for a cost that never fits. The empty key stands for
// everybody and is never banned.
//
// After a ban the next one is twice as long if it comes before as much time has
// gone by as the ban lasted; each further such time of its level takes one
// doubling back.
//
// Memory is bounded by [MaxKeys], for keys that were denied lately and keys
// that are banned or remembered each. A key that finds no room is not counted
// and not banned; the limiter holds it to its limit all the same.
//
// Do not use it over a limit that honest callers meet often, nor where many
// callers share a key, as behind one address.
type Ban struct {
	limiter Limiter
	penalty penalty
	counter strikes
	clock   clock
	bans    words
	denials words
}

// NewBan wraps l. denials is how many denials in which period bring a ban,
// such as PerMinute(10): 1 to 1048575 in 1 ms (the resolution) to a year. The
// first ban lasts ban, later ones longest at most, which is 90 days or less.
// The only option is [MaxKeys]. It panics if l is nil.
func NewBan(l Limiter, denials Rate, ban, longest time.Duration, opts ...Option) (*Ban, error) {
	const name = "escalate"
	mustLimiter(l, "NewBan")
	s, err := (&kind{title: name, takes: []string{"MaxKeys"}}).configure(Spec{}, opts)
	if err != nil {
		return nil, err
	}
	e := &Ban{limiter: l, clock: startClock()}
	if e.penalty, err = newPenalty(ban, longest); err != nil {
		return nil, fmt.Errorf("algo: %s: %w", name, err)
	}
	if e.counter, err = newStrikes(denials); err != nil {
		return nil, fmt.Errorf("algo: %s: %w", name, err)
	}
	// Sharing words when the table is full would ban bystanders.
	for _, w := range []*words{&e.bans, &e.denials} {
		w.clock, w.maxKeys, w.onFull = e.clock, s.maxKeys(), AllowNew
	}
	return e, nil
}

// Acquire denies a banned key, and counts the limiter's denials of others.
func (e *Ban) Acquire(ctx context.Context, key string, n int64) (lease Lease, err error) {
	if n < 0 {
		return lease, costError(n)
	}
	if left := e.Banned(key); left > 0 {
		e.deny(&lease.Decision, left)
		return lease, nil
	}
	if lease, err = e.limiter.Acquire(ctx, key, n); err == nil {
		e.count(&lease.Decision, key)
	}
	return lease, err
}

func (e *Ban) acquireIn(p *pass, lease *Lease, key string, n int64) error {
	if left := e.Banned(key); left > 0 {
		e.deny(&lease.Decision, left)
		return nil
	}
	err := p.acquire(e.limiter, lease, key, n)
	if err == nil {
		e.count(&lease.Decision, key)
	}
	return err
}

func (e *Ban) askIn(p *pass, d *Decision, key string, n int64) error {
	if left := e.Banned(key); left > 0 {
		e.deny(d, left)
		return nil
	}
	return p.ask(e.limiter, d, key, n)
}

// deny writes the decision on a banned key.
func (e *Ban) deny(d *Decision, left time.Duration) {
	about, _ := Describe(e.limiter)
	*d = Decision{Reason: Quota, Limit: about.Quota, RetryAfter: left, NextAfter: left, ResetAfter: left}
}

// count counts a denial, and turns the last one into the ban.
func (e *Ban) count(d *Decision, key string) {
	if d.Allowed || d.Reason != Quota || key == "" || !e.strike(key) {
		return
	}
	if left := e.ban(key); left > d.RetryAfter {
		e.deny(d, left)
	}
}

// strike reports whether this denial of key brings a ban.
func (e *Ban) strike(key string) bool {
	c := e.denials.cell(key)
	for {
		var word int64
		c, word = c.load()
		now := e.clock.now()
		next, out := e.counter.strike(word, now)
		switch c.swap(word, next, e.counter.horizon(now)) {
		case done:
			return out
		case full:
			return false
		}
	}
}

// ban bans key for longer than the last time, unless it is banned already.
func (e *Ban) ban(key string) time.Duration {
	c := e.bans.cell(key)
	for {
		var word int64
		c, word = c.load()
		now := e.clock.now()
		next, until := e.penalty.ban(word, now)
		if _, running := e.penalty.read(word, now); running > now {
			return toDuration(running - now)
		}
		switch c.swap(word, next, now) {
		case done:
			return toDuration(until - now)
		case full:
			return 0
		}
	}
}

// Banned returns how long key is still banned; 0 if it is not.
func (e *Ban) Banned(key string) time.Duration {
	if key == "" || e.bans.keys.Load() == nil {
		return 0
	}
	_, word := e.bans.cell(key).load()
	if word == 0 {
		return 0 // most keys, without a look at the clock
	}
	now := e.clock.now()
	if _, until := e.penalty.read(word, now); until > now {
		return toDuration(until - now)
	}
	return 0
}

// Reset lifts the ban of key and forgets its denials and earlier bans.
func (e *Ban) Reset(key string) {
	now := e.clock.now()
	e.bans.overwrite(key, now, now)
	h := e.counter.horizon(now)
	e.denials.overwrite(key, h, h)
}

// Len counts the keys that are banned or have been and are still remembered.
// It walks the table.
func (e *Ban) Len() int { return e.bans.live(e.clock.now()) }

// Overflowed counts the denials that were not counted and the bans that were
// not made because MaxKeys keys were remembered.
func (e *Ban) Overflowed() uint64 { return e.bans.spilled() + e.denials.spilled() }

// Describe forwards to the limiter.
func (e *Ban) Describe() (Description, bool) { return Describe(e.limiter) }

// SetSpec applies spec to the limiter; see [Spec.Apply].
func (e *Ban) SetSpec(spec Spec) error { return spec.Apply(e.limiter) }

func (e *Ban) wrapped() Limiter { return e.limiter }
