// Package rules keeps limits in Redis that can change while the service runs.
//
//	set, err := rules.New(ctx, store, "limits", rules.WithLimit("search", spec))
//	err = set.Put(ctx, "search", rules.Rule{Limit: spec})
//	lease, err := set.Limiter("search").Acquire(ctx, user, 1)
//
// When [Rules.Put] returns nil the rule is in force in this instance, and within a second in
// all others, or within six after an outage of ten seconds: each runs a script on the master
// about 1.6 times a second that returns the changes. A rule never returns to an older version.
// The last known rules stay in force while Redis is away, and the instances write them again if
// Redis has lost them. They also follow a rule that is written to Redis by hand: each call
// compares 128 rules with their versions. After a change keys keep their debt.
//
// An instance that starts while Redis is away knows no rule. Until it has read Redis
// ([Rules.Loaded]), the limits of [WithLimit] are in force, and rules without one deny.
package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/option"
)

// Rules is a set of rules under one name. It is safe for concurrent use.
type Rules struct {
	store       *distributed.Store
	keys        []string
	name, app   string // name is escaped
	denyUnknown bool
	limits      map[string]algo.Spec // by WithLimit
	logger      *slog.Logger

	ctx      context.Context
	cancel   context.CancelFunc
	follower sync.WaitGroup
	known    sync.Map // *entry by name
	loaded   atomic.Bool

	failed int // polls since the last successful one

	turn   chan struct{} // holds a token while the fields below are in use
	latest int64         // the highest version known
	sum    int64         // of all versions known
	rank   int           // of the first rule that the next call compares with its version
}

// maxName bounds the names of rules, and of sets of them.
const maxName = 90

// escapeName escapes the names of sets and rules, which a colon joins.
var escapeName = strings.NewReplacer("%", "%25", ":", "%3A")

// New returns the rules under name, 1 to 90 bytes (: and % count as three), and follows their changes
// until ctx ends or Close. It tries for a second to load them, and logs a failure: see [WithLimit] and
// [Rules.Loaded]. Only the arguments can cause an error. Close the rules before the store.
func New(ctx context.Context, store *distributed.Store, name string, opts ...Option) (*Rules, error) {
	escaped := escapeName.Replace(name)
	if name == "" || len(escaped) > maxName {
		return nil, fmt.Errorf("rules: name %q has %d bytes, where : and %% count as three, want 1 to %d", name, len(escaped), maxName)
	}
	if store.Client() == nil {
		return nil, errors.New("rules: the store is not on a client of go-redis, which rules need")
	}
	key := store.Prefix() + ":{::rules:" + url.QueryEscape(name) + "}"
	r := &Rules{
		store: store, keys: []string{key, key + ":versions"}, name: escaped,
		logger: slog.Default(), turn: make(chan struct{}, 1), limits: map[string]algo.Spec{},
	}
	if err := option.Apply(r, opts, Option.split, nil); err != nil {
		return nil, fmt.Errorf("rules: %q: %w", name, err)
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.poll()
	r.follower.Go(r.follow)
	return r, nil
}

// Loaded reports whether all rules have been read from Redis since the start. A readiness check may
// use it.
func (r *Rules) Loaded() bool { return r.loaded.Load() }

// Close stops following the rules. The last known ones stay in force.
func (r *Rules) Close() error {
	r.cancel()
	r.follower.Wait()
	return nil
}

// Put stores doc under the name rule, 1 to 90 bytes, for all instances. If doc.Version is not 0
// and Redis has another version, Put returns [ErrRuleChanged] and stores nothing, so that
// concurrent changes of what [Rules.Get] returned do not undo each other. A rule that is put
// unchanged keeps its version. Other errors report a limit that Redis cannot keep, or are those
// of Redis, which may have stored the rule nevertheless.
func (r *Rules) Put(ctx context.Context, rule string, doc Rule) error {
	if err := checkName(rule); err != nil {
		return fmt.Errorf("rules: %w", err)
	}
	err := doc.validate()
	if err == nil {
		text, _ := json.Marshal(doc)
		err = r.sync(ctx, nil, rule, doc.Version, text)
	}
	return about(rule, err)
}

// Delete removes rule for all instances. An instance that was cut off from Redis for a week restores it.
func (r *Rules) Delete(ctx context.Context, rule string) error {
	return about(rule, r.sync(ctx, nil, rule, 0, tombstone))
}

// Get reads rule from Redis. The error is [ErrNoRule], or the error of Redis.
func (r *Rules) Get(ctx context.Context, rule string) (found Rule, err error) {
	err = r.sync(ctx, func() (err error) { found, err = r.entry(rule).parse(); return err })
	return found, about(rule, err)
}

func checkName(rule string) error {
	if rule == "" || len(rule) > maxName {
		return fmt.Errorf("rule name %q has %d bytes, want 1 to %d", rule, len(rule), maxName)
	}
	return nil
}

func about(rule string, err error) error {
	if err != nil {
		return fmt.Errorf("rules: rule %q: %w", rule, err)
	}
	return nil
}
