package admin

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
)

const (
	longestBan  = 365 * 24 * time.Hour
	mostBlocked = 1000
	longestKey  = 4096 // bytes
)

// blocklist holds keys until an instant. Readers do not lock; the map is
// replaced by each change, which also drops expired entries.
type blocklist struct {
	mu   sync.Mutex
	keys atomic.Pointer[map[string]*blocked]
}

// find returns the entry that denies key, nil if it is not blocked.
func (l *blocklist) find(key string) *blocked {
	m := l.keys.Load()
	if m == nil {
		return nil
	}
	if b := (*m)[key]; b != nil && time.Now().Before(b.until) {
		return b
	}
	return nil
}

// change replaces the map by a copy without expired entries, changed by f. An
// empty one is none, so that looking is free again.
func (l *blocklist) change(f func(map[string]*blocked) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := map[string]*blocked{}
	if m := l.keys.Load(); m != nil {
		keys = maps.Clone(*m)
	}
	now := time.Now()
	maps.DeleteFunc(keys, func(_ string, b *blocked) bool { return !now.Before(b.until) })
	err := f(keys)
	if len(keys) == 0 {
		l.keys.Store(nil)
	} else {
		l.keys.Store(&keys)
	}
	return err
}

func (l *blocklist) add(key string, b *blocked) error {
	return l.change(func(keys map[string]*blocked) error {
		switch {
		case len(key) > longestKey:
			return fmt.Errorf("admin: the key has %d bytes, want %d at most", len(key), longestKey)
		case keys[key] == nil && len(keys) >= mostBlocked:
			return fmt.Errorf("admin: %d keys are blocked already", len(keys))
		}
		keys[key] = b
		return nil
	})
}

func (l *blocklist) remove(key string) (was bool) {
	if l.find(key) == nil {
		return false
	}
	_ = l.change(func(keys map[string]*blocked) error {
		_, was = keys[key]
		delete(keys, key)
		return nil
	})
	return was
}

func (l *blocklist) len() (n int) {
	if m := l.keys.Load(); m != nil {
		now := time.Now()
		for _, b := range *m {
			if now.Before(b.until) {
				n++
			}
		}
	}
	return n
}

// blocked denies until an instant, and answers as a quota that is spent.
type blocked struct {
	until   time.Time
	limiter algo.Limiter
}

// Acquire denies. As with any limiter, looking (n = 0) is not denied.
func (b *blocked) Acquire(_ context.Context, _ string, n int64) (lease algo.Lease, err error) {
	if n < 0 {
		return lease, fmt.Errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	}
	left := max(time.Until(b.until), 1)
	desc, _ := algo.Describe(b.limiter)
	lease.Decision = algo.Decision{Allowed: n == 0, Limit: desc.Quota, NextAfter: left, ResetAfter: left}
	if n > 0 {
		lease.Reason, lease.RetryAfter = algo.Quota, left
	}
	return lease, nil
}
