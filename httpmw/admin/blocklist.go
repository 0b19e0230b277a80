package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

const (
	longestBan  = 365 * 24 * time.Hour
	mostBlocked = 1000
	longestKey  = 4096 // bytes
)

// blocklist has the blocked keys of a limiter, or those with another limit. Readers do not lock; the content
// is replaced by each change, which also drops expired entries.
type blocklist struct {
	mu  sync.Mutex
	now atomic.Pointer[blocks]
}

// blocks is the content of a blocklist: the same entries by key and by hash.
type blocks struct {
	keys   map[string]*block
	hashes map[uint64]*block
}

// find returns the entry of key, nil if it is not blocked.
func (l *blocklist) find(key string) *block {
	b := l.now.Load()
	if b == nil {
		return nil
	}
	return b.keys[key].inForce(time.Now())
}

// findHash returns the entry of the key with a hash.
func (l *blocklist) findHash(h uint64, at time.Time) *block {
	b := l.now.Load()
	if b == nil {
		return nil
	}
	return b.hashes[h].inForce(at)
}

// all returns the entries, the first to end first.
func (l *blocklist) all() (all []*block) {
	if b := l.now.Load(); b != nil {
		now := time.Now()
		for _, one := range b.keys {
			if one.inForce(now) != nil {
				all = append(all, one)
			}
		}
	}
	slices.SortFunc(all, func(a, b *block) int { return cmp.Or(a.until.Compare(b.until), cmp.Compare(a.hash, b.hash)) })
	return all
}

// change replaces the content by a copy without expired entries, changed by f.
// An empty one is none, so that looking is free again.
func (l *blocklist) change(f func(map[string]*block) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := map[string]*block{}
	if b := l.now.Load(); b != nil {
		keys = maps.Clone(b.keys)
	}
	now := time.Now()
	maps.DeleteFunc(keys, func(_ string, b *block) bool { return b.inForce(now) == nil })
	err := f(keys)
	if len(keys) == 0 {
		l.now.Store(nil)
		return err
	}
	hashes := make(map[uint64]*block, len(keys))
	for _, b := range keys {
		hashes[b.hash] = b
	}
	l.now.Store(&blocks{keys, hashes})
	return err
}

func (l *blocklist) add(b *block) error {
	return l.change(func(keys map[string]*block) error {
		switch {
		case len(b.key) > longestKey:
			return fmt.Errorf("admin: the key has %d bytes, want at most %d", len(b.key), longestKey)
		case keys[b.key] == nil && len(keys) >= mostBlocked:
			return fmt.Errorf("admin: %d keys are blocked already, or have another limit", len(keys))
		}
		keys[b.key] = b
		return nil
	})
}

func (l *blocklist) remove(key string) (was bool) {
	if l.find(key) == nil {
		return false
	}
	_ = l.change(func(keys map[string]*block) error {
		_, was = keys[key]
		delete(keys, key)
		return nil
	})
	return was
}

// block is a key that is denied, or has another limit, until an instant.
type block struct {
	key          string
	hash         uint64
	since, until time.Time
	by, note     string // of the operator
	limiter      algo.Limiter
	instead      *algo.RateLimiter // nil: the key is denied
}

func newBlock(key string, d time.Duration, l algo.Limiter) *block {
	now := time.Now()
	return &block{key: key, hash: keyfunc.Hash(key), since: now, until: now.Add(d), limiter: l}
}

// inForce returns b unless it is nil or has ended.
func (b *block) inForce(at time.Time) *block {
	if b == nil || !at.Before(b.until) {
		return nil
	}
	return b
}

// explains reports whether a denial comes from b: it ends when b does.
func (b *block) explains(at time.Time, d *algo.Decision) bool {
	return d.Reason == algo.Quota && at.Add(d.RetryAfter).Sub(b.until).Abs() < 2*time.Second
}

// Acquire denies every cost, 0 too.
func (b *block) Acquire(_ context.Context, _ string, n int64) (lease algo.Lease, err error) {
	if n < 0 {
		return lease, fmt.Errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	}
	left := max(time.Until(b.until), 1)
	lease.Decision = algo.Decision{Reason: algo.Quota, Limit: algo.About(b.limiter).Quota, RetryAfter: left, NextAfter: left, ResetAfter: left}
	return lease, nil
}
