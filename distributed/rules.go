package distributed

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algo"
)

//go:embed putrule.lua
var putRuleSource string

// Rules are limits that are kept in Redis and changed while the service runs.
//
// Every instance holds a copy, which it renews when it is told of a change and
// in any case once in each poll interval. Decisions use the copy, so rules cost
// nothing for each request, and the last known ones stay in force while Redis
// is away, or when it comes back empty. A changed limit keeps what keys owe;
// putting the same rule again changes nothing.
type Rules struct {
	store   *Store
	key     string
	channel string
	prefix  string // of the limits' names
	put     *redis.Script
	rulesSettings

	ctx      context.Context
	loading  sync.Mutex
	texts    map[string]string   // as loaded last, by name
	limiters map[string]*Limiter // made so far, by name and overridden key
	current  atomic.Pointer[map[string]*ruling]
}

// longestRule bounds the names of rules, and of sets of them.
const longestRule = 90

// ruling is a rule, ready to decide.
type ruling struct {
	rule      Rule
	limiter   algo.Limiter
	overrides map[string]algo.Limiter
}

// RulesOption adjusts Rules.
type RulesOption func(*rulesSettings) error

type rulesSettings struct {
	app         string
	poll        time.Duration
	denyUnknown bool
}

// WithApp names the application that this instance belongs to, for the Apps of
// a rule.
func WithApp(name string) RulesOption {
	return func(s *rulesSettings) error { s.app = name; return nil }
}

// WithPollInterval sets how often the rules are read if nobody tells of a
// change, 10 ms to 1 h; the default is 10 s. Each pause is up to a half
// shorter, so that the instances spread.
func WithPollInterval(d time.Duration) RulesOption {
	return func(s *rulesSettings) error {
		s.poll = d
		return within("poll interval", d, 10*time.Millisecond, time.Hour)
	}
}

// WithUnknownDenied makes the limiters of rules that do not exist deny
// everything, with the Reason [algo.Overload]. By default they admit
// everything, with the Source [algo.SourceOff].
func WithUnknownDenied() RulesOption {
	return func(s *rulesSettings) error { s.denyUnknown = true; return nil }
}

// Rules returns the rules that are kept under name, and follows their changes
// until ctx ends or the store is closed. It tries to load them, and does not
// fail because Redis is away: the error is about the arguments only.
func (s *Store) Rules(ctx context.Context, name string, opts ...RulesOption) (*Rules, error) {
	if name == "" || len(name) > longestRule {
		return nil, fmt.Errorf("distributed: rules: name %q has %d bytes, want 1 to %d", name, len(name), longestRule)
	}
	r := &Rules{
		store: s, rulesSettings: rulesSettings{poll: 10 * time.Second},
		key:    s.prefix + ":{::rules:" + escape(name) + "}",
		prefix: "rule:" + name + ":",
		put:    redis.NewScript(putRuleSource),
		texts:  map[string]string{}, limiters: map[string]*Limiter{},
	}
	r.channel = r.key + ":changed"
	r.current.Store(&map[string]*ruling{})
	for i, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("distributed: rules %q: option %d is nil", name, i)
		}
		if err := o(&r.rulesSettings); err != nil {
			return nil, fmt.Errorf("distributed: rules %q: %w", name, err)
		}
	}
	if s.closed.Load() {
		return nil, ErrClosed
	}
	var cancel context.CancelFunc
	r.ctx, cancel = context.WithCancel(ctx)
	context.AfterFunc(s.life, cancel)
	r.reload()
	s.help(r.follow)
	return r, nil
}

// Put keeps a rule under its name, 1 to 90 bytes, for all instances, which
// follow as soon as they hear of it. The error names what no limit can keep, or
// is Redis'.
func (r *Rules) Put(ctx context.Context, rule string, doc Rule) error {
	if rule == "" || len(rule) > longestRule {
		return fmt.Errorf("distributed: rule: name %q has %d bytes, want 1 to %d", rule, len(rule), longestRule)
	}
	if err := doc.validate(); err != nil {
		return fmt.Errorf("distributed: rule %q: %w", rule, err)
	}
	return r.write(ctx, rule, document{Rule: doc})
}

// Delete removes a rule for all instances.
func (r *Rules) Delete(ctx context.Context, rule string) error {
	return r.write(ctx, rule, document{Deleted: true})
}

func (r *Rules) write(ctx context.Context, rule string, d document) error {
	text, err := d.text()
	if err != nil {
		return fmt.Errorf("distributed: rule %q: %w", rule, err)
	}
	// Running it twice changes nothing, so go-redis may repeat it.
	if err := r.put.Run(ctx, r.store.client, []string{r.key}, rule, text).Err(); err != nil {
		return fmt.Errorf("distributed: rule %q: %w", rule, err)
	}
	r.reload()
	return r.store.client.Publish(ctx, r.channel, rule).Err()
}

// Get reads a rule from Redis. The error is [ErrNoRule], or Redis'.
func (r *Rules) Get(ctx context.Context, rule string) (Rule, error) {
	text, err := r.store.client.HGet(ctx, r.key, rule).Result()
	if errors.Is(err, redis.Nil) {
		return Rule{}, fmt.Errorf("%w: %q", ErrNoRule, rule)
	}
	if err != nil {
		return Rule{}, fmt.Errorf("distributed: rule %q: %w", rule, err)
	}
	d, err := parseDocument(text)
	if err != nil {
		return Rule{}, fmt.Errorf("distributed: rule %q: %w", rule, err)
	}
	if d.Deleted {
		return Rule{}, fmt.Errorf("%w: %q", ErrNoRule, rule)
	}
	return d.Rule, nil
}

// follow reads the rules when it is told to, and from time to time.
func (r *Rules) follow() {
	told := r.store.client.Subscribe(r.ctx, r.channel)
	defer func() { _ = told.Close() }()
	// A subscription that begins, or begins again, may have missed changes: it
	// counts as one.
	changes := told.ChannelWithSubscriptions()
	for {
		pause := time.NewTimer(r.poll/2 + rand.N(r.poll/2))
		select {
		case _, ok := <-changes:
			if !ok { // the client has been closed: only the poll is left
				changes = nil
			}
		case <-pause.C:
		case <-r.ctx.Done():
			pause.Stop()
			return
		}
		pause.Stop()
		r.reload()
	}
}

// reload reads the rules. What cannot be read leaves everything as it is.
func (r *Rules) reload() {
	r.loading.Lock()
	defer r.loading.Unlock()
	ctx, cancel := context.WithTimeout(r.ctx, r.store.patience())
	defer cancel()
	texts, err := r.store.client.HGetAll(ctx, r.key).Result()
	if err != nil {
		r.store.complain(classify(err), err)
		return
	}
	next := maps.Clone(*r.current.Load())
	for name, text := range texts {
		if r.texts[name] == text {
			continue
		}
		if err := r.apply(next, name, text); err != nil {
			r.store.logger.Error("distributed: a rule cannot be used", "rule", name, "err", err)
			continue
		}
		r.texts[name] = text
	}
	r.current.Store(&next)
}

// apply makes a rule's text part of next.
func (r *Rules) apply(next map[string]*ruling, name, text string) error {
	d, err := parseDocument(text)
	if err != nil {
		return err
	}
	if d.Deleted {
		delete(next, name)
		return nil
	}
	limiter, err := r.limiter(name, "", d.Limit)
	if err != nil {
		return err
	}
	g := &ruling{rule: d.Rule, limiter: r.dress(limiter, d.Mode), overrides: map[string]algo.Limiter{}}
	for key, spec := range d.Overrides {
		limiter, err := r.limiter(name, key, spec)
		if err != nil {
			return err
		}
		g.overrides[key] = r.dress(limiter, d.Mode)
	}
	next[name] = g
	return nil
}

// limiter returns the limiter of a rule, or of one key that it overrides, with
// the limit changed if it exists already.
func (r *Rules) limiter(name, key string, spec algo.Spec) (*Limiter, error) {
	id := name + "\x00" + key
	a := fromSpec(spec)
	if l := r.limiters[id]; l != nil {
		return l, l.set(func(was *asked) {
			was.rate, was.burst, was.burstSet, was.maxWait = a.rate, a.burst, a.burstSet, a.maxWait
		})
	}
	l, err := r.store.bucket("rule", r.prefix+name, a, nil, func(a asked) (limit, error) {
		return asLimit(newGCRA(a.rate, a.theBurst(), a.maxWait))
	})
	if err == nil {
		r.limiters[id] = l
	}
	return l, err
}

func (r *Rules) dress(l *Limiter, m Mode) algo.Limiter {
	if m == Observe {
		return algo.Shadow(l)
	}
	return l
}
