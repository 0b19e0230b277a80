package rules

import (
	"cmp"
	"context"
	"crypto/fips140"
	_ "embed"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/warning"
)

//go:embed sync.lua
var source string

// script hashes source on first use. SHA-1 names it for EVALSHA and protects no secret, so FIPS 140-3
// does not apply.
var script = sync.OnceValue(func() (s *redis.Script) {
	fips140.WithoutEnforcement(func() { s = redis.NewScript(source) })
	return s
})

// tombstone is the text of a deleted rule. A rule that is missing has been lost, and stays in force.
const tombstone = `{"deleted":true}`

// pause is the longest time between two polls; the shortest is a third less. After five
// failures in a row it is eight times as long: go-redis dials ten times for each.
const pause = 750 * time.Millisecond

func (r *Rules) follow() {
	for {
		select {
		case <-time.After((pause - rand.N(pause/3)) * time.Duration(1+min(r.failed/5, 1)*7)):
			r.poll()
		case <-r.ctx.Done():
			return
		}
	}
}

// poll reads the changes, and logs the first of several failures.
func (r *Rules) poll() {
	ctx, cancel := context.WithTimeout(r.ctx, time.Second)
	defer cancel()
	err := r.sync(ctx, nil)
	if err == nil {
		r.failed = 0
		return
	}
	if r.failed++; r.failed == 1 && r.ctx.Err() == nil {
		now := r.store.Stats()
		level, text := slog.LevelWarn, "rules: cannot read the rules from Redis; the last known ones stay in force"
		if !r.loaded.Load() {
			level, text = slog.LevelError, "rules: the rules have not been read from Redis; until then the limits of WithLimit and those beneath Over are in force, and other rules deny"
		}
		r.logger.Log(r.ctx, level, text, "decides", now.WithoutRedis(), "key", r.keys[0], "err", warning.Clip(err.Error(), warning.Longest))
	}
	if c, ok := r.store.Client().(interface{ ReloadState(context.Context) }); ok {
		c.ReloadState(r.ctx) // a cluster may have a new master
	}
}

// sync writes rules, as sync.lua takes them, reads the changes and calls then, unless it is nil.
// If Redis has lost versions, it writes them again.
func (r *Rules) sync(ctx context.Context, then func() error, writes ...any) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	whole, err := r.exchange(ctx, r.latest, writes)
	if err == nil && !whole {
		err = r.restore(ctx)
	}
	if err == nil && then != nil {
		err = then()
	}
	return err
}

// restore writes all rules that Redis lacks or has in older versions: first the newest, which a
// failover loses, then parts in any order until Redis has all, because other instances do the same.
// If the versions still differ, this instance lacks some.
func (r *Rules) restore(ctx context.Context) error {
	var known []*entry
	r.known.Range(func(_, v any) bool { known = append(known, v.(*entry)); return true })
	slices.SortFunc(known, func(a, b *entry) int { return cmp.Compare(b.version, a.version) })
	parts := slices.Collect(slices.Chunk(known, 500))
	others := parts[min(1, len(parts)):]
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	for _, part := range parts {
		var writes []any
		for _, e := range part {
			if e.version > 0 {
				writes = append(writes, e.name, -e.version, e.text)
			}
		}
		if whole, err := r.exchange(ctx, r.latest, writes); whole || err != nil {
			return err
		}
	}
	_, err := r.exchange(ctx, 0, nil)
	return err
}

// exchange writes rules and reads the versions above since. whole reports whether Redis and this
// instance have the same versions.
func (r *Rules) exchange(ctx context.Context, since int64, writes []any) (whole bool, err error) {
	all, most := since == 0, 500
	if !r.loaded.Load() {
		all, most = true, 5000 // from a start to the end in several polls, if it takes that long
	}
	for {
		r.rank += 128
		reply, err := script().Run(ctx, r.store.Client(), r.keys, append([]any{since, r.latest, r.rank, most}, writes...)...).Slice()
		if err != nil {
			return false, err
		}
		for c := range slices.Chunk(reply[3:], 3) {
			since = c[1].(int64)
			r.entry(c[0].(string)).note(since, c[2].(string))
		}
		if reply[2] == int64(0) {
			return false, ErrRuleChanged
		}
		if since >= reply[0].(int64) || len(reply) == 3 {
			r.loaded.Store(true)
			if all {
				r.sum = reply[1].(int64) // with the versions of deleted rules that are forgotten
			}
			return reply[0] == r.latest && reply[1] == r.sum&(1<<52-1), nil
		}
		writes = nil
	}
}

// note puts a version of the rule in force, unless a later one is. It logs an invalid version, such as
// one that a later version of this package wrote; the last valid one stays in force, and without one
// the rule counts as unknown.
func (e *entry) note(version int64, text string) {
	r := e.rules
	if version <= e.version {
		return
	}
	r.latest = max(r.latest, version)
	r.sum += version - e.version
	e.version, e.text = version, text
	rule, err := e.parse()
	unreadable := err != nil && !errors.Is(err, ErrNoRule)
	e.mu.Lock()
	e.unread.Store(unreadable && e.rule.Version == 0)
	e.mu.Unlock()
	if unreadable {
		r.logger.Error("rules: a rule is invalid; its last valid version stays in force until it is put again",
			"key", r.keys[0], "rule", warning.Clip(e.name, warning.Longest), "err", warning.Clip(err.Error(), warning.Longest))
		return
	}
	e.set(rule)
}

// parse parses the text. The error is [ErrNoRule] if there is no rule.
func (e *entry) parse() (rule Rule, err error) {
	if e.version == 0 || e.text == tombstone {
		return rule, ErrNoRule
	}
	err = json.Unmarshal([]byte(e.text), &rule)
	rule.Version = e.version
	return rule, err
}
