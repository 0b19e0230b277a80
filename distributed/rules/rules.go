// Package rules keeps limits in Redis, to be changed while the service runs.
//
//	set, err := rules.New(ctx, store, "limits")
//	err = set.Put(ctx, "search", rules.Rule{Limit: spec})
//	lease, err := set.Limiter("search").Acquire(ctx, user, 1)
//
// Every instance keeps a copy, which it reloads after a change and in any case
// once in each poll interval. Decisions use the copy, so rules cost nothing for
// each request, and the last known rules stay in force while Redis is away, or
// when it has lost its data. After a change keys keep their debt; putting the
// same rule again changes nothing.
package rules

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

//go:embed put.lua
var putSource string

var putScript = redis.NewScript(putSource)

// Rules is a set of rules under one name. It is safe for concurrent use.
type Rules struct {
	store   *distributed.Store
	client  redis.UniversalClient
	key     string
	channel string
	name    string // escaped
	settings

	ctx      context.Context
	cancel   context.CancelFunc
	follower sync.WaitGroup
	loading  sync.Mutex
	texts    map[string]string // as last loaded, by name
	invalid  map[string]string // as last logged, by name
	limiters map[limiterID]*madeLimiter
	current  atomic.Pointer[map[string]*activeRule]
}

// maxName bounds the names of rules, and of sets of them.
const maxName = 90

// escapeName keeps the names of sets and rules apart where they are joined by a colon.
var escapeName = strings.NewReplacer("%", "%25", ":", "%3A")

// loadTimeout bounds how long the rules are read.
const loadTimeout = time.Second

// activeRule is a rule with its limiters.
type activeRule struct {
	rule      Rule
	limiter   algo.Limiter
	overrides map[string]algo.Limiter
}

// New returns the rules that are kept under name, 1 to 90 bytes (: and % count as
// three), and follows their changes until ctx ends or Close. It tries to load them, and does not
// fail while Redis is away: the error concerns the arguments only. Close the
// rules before the store.
func New(ctx context.Context, store *distributed.Store, name string, opts ...Option) (*Rules, error) {
	escaped := escapeName.Replace(name)
	if name == "" || len(escaped) > maxName {
		return nil, fmt.Errorf("rules: name %q has %d bytes, where : and %% count as three, want 1 to %d", name, len(escaped), maxName)
	}
	if store.Client() == nil {
		return nil, errors.New("rules: the store is not on a client of go-redis, which rules need")
	}
	r := &Rules{
		store: store, client: store.Client(), settings: settings{poll: 10 * time.Second, logger: slog.Default()},
		key:   store.Prefix() + ":{::rules:" + url.QueryEscape(name) + "}",
		name:  escaped,
		texts: map[string]string{}, invalid: map[string]string{}, limiters: map[limiterID]*madeLimiter{},
	}
	r.channel = r.key + ":changed"
	r.current.Store(&map[string]*activeRule{})
	if err := r.configure(opts); err != nil {
		return nil, fmt.Errorf("rules: %q: %w", name, err)
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.reload()
	r.follower.Go(r.follow)
	return r, nil
}

// Close stops following the rules. The last known ones stay in force.
func (r *Rules) Close() error {
	r.cancel()
	r.follower.Wait()
	return nil
}

// Put stores a rule under its name, 1 to 90 bytes, for all instances, which
// follow when they receive the notification. The error is about a limit that
// Redis cannot keep, or the error of Redis. If it says that the rule is stored, only the
// notification failed, and other instances follow within the interval of their polls.
func (r *Rules) Put(ctx context.Context, rule string, doc Rule) error {
	if rule == "" || len(rule) > maxName {
		return fmt.Errorf("rules: rule name %q has %d bytes, want 1 to %d", rule, len(rule), maxName)
	}
	if err := doc.validate(); err != nil {
		return fmt.Errorf("rules: rule %q: %w", rule, err)
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
		return fmt.Errorf("rules: rule %q: %w", rule, err)
	}
	// Running it twice changes nothing, so go-redis may repeat it.
	if err := putScript.Run(ctx, r.client, []string{r.key}, rule, text).Err(); err != nil {
		return fmt.Errorf("rules: rule %q: %w", rule, err)
	}
	r.reload()
	if err := r.client.Publish(ctx, r.channel, rule).Err(); err != nil {
		return fmt.Errorf("rules: rule %q is stored, but was not announced (grant &%s): other instances follow within %v: %w", rule, r.channel, r.poll, err)
	}
	return nil
}

// Get reads a rule from Redis. The error is [ErrNoRule], or the error of Redis.
func (r *Rules) Get(ctx context.Context, rule string) (Rule, error) {
	text, err := r.client.HGet(ctx, r.key, rule).Result()
	if errors.Is(err, redis.Nil) {
		return Rule{}, fmt.Errorf("%w: %q", ErrNoRule, rule)
	}
	if err != nil {
		return Rule{}, fmt.Errorf("rules: rule %q: %w", rule, err)
	}
	d, err := parseDocument(text)
	if err != nil {
		return Rule{}, fmt.Errorf("rules: rule %q: %w", rule, err)
	}
	if d.Deleted {
		return Rule{}, fmt.Errorf("%w: %q", ErrNoRule, rule)
	}
	return d.Rule, nil
}

// follow reloads the rules after notifications, and once in each poll interval.
func (r *Rules) follow() {
	subscription := r.client.Subscribe(r.ctx, r.channel)
	defer func() { _ = subscription.Close() }()
	// A subscription that begins, or begins again, may have missed changes: it
	// counts as one.
	changes := subscription.ChannelWithSubscriptions()
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

// reload reads the rules. A rule that cannot be read stays as it is.
func (r *Rules) reload() {
	r.loading.Lock()
	defer r.loading.Unlock()
	ctx, cancel := context.WithTimeout(r.ctx, loadTimeout)
	defer cancel()
	texts, err := r.client.HGetAll(ctx, r.key).Result()
	if err != nil {
		if r.ctx.Err() == nil {
			r.logger.Warn("rules: cannot read the rules from Redis; the last known ones stay in force", "key", r.key, "err", err)
		}
		return
	}
	next := maps.Clone(*r.current.Load())
	for name, text := range texts {
		if r.texts[name] == text {
			continue
		}
		if err := r.apply(next, name, text); err != nil {
			if r.invalid[name] != text { // once, not at each poll
				r.invalid[name] = text
				r.logger.Error("rules: a rule is invalid; its last valid version stays in force until it is put again", "key", r.key, "rule", name, "err", err)
			}
			continue
		}
		r.texts[name] = text
		delete(r.invalid, name)
	}
	r.current.Store(&next)
	r.free(next)
}

// apply makes a rule's text part of next.
func (r *Rules) apply(next map[string]*activeRule, name, text string) error {
	d, err := parseDocument(text)
	if err != nil {
		return err
	}
	if d.Deleted {
		delete(next, name)
		return nil
	}
	limiter, err := r.limiter(idOf(name, d.Limit), d.Rule, d.Limit)
	if err != nil {
		return err
	}
	a := &activeRule{d.Rule, limiter, map[string]algo.Limiter{}}
	for key, spec := range d.Overrides {
		if a.overrides[key], err = r.limiter(overrideID(name, key, spec), d.Rule, spec); err != nil {
			return err
		}
	}
	next[name] = a
	return nil
}
