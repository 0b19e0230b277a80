package algo

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
)

// KeySet is a set of keys, listed one by one and by prefix, for [AllowList]
// and [DenyList]. It can be replaced as a whole while it is in use. The zero
// KeySet is empty. A lookup takes one step for the key and one for each
// distinct prefix length, and allocates nothing.
type KeySet struct {
	m atomic.Pointer[matcher[struct{}]]
}

// NewKeySet makes a set of the keys in exact and of all keys that begin with
// one of prefixes. Neither may contain the empty string, which may come from a
// blank line in a file: the empty key is the limiter's own bucket, and the
// empty prefix matches every key.
func NewKeySet(exact, prefixes []string) (*KeySet, error) {
	s := new(KeySet)
	if err := s.Set(exact, prefixes); err != nil {
		return nil, err
	}
	return s, nil
}

// Set replaces the set at once, for all later requests. After an error the set
// is unchanged.
func (s *KeySet) Set(exact, prefixes []string) error {
	e, err := setOf("key", exact)
	if err != nil {
		return err
	}
	p, err := setOf("prefix", prefixes)
	if err != nil {
		return err
	}
	s.m.Store(newMatcher(e, p))
	return nil
}

// Contains reports whether key is in the set.
func (s *KeySet) Contains(key string) bool {
	_, ok := s.m.Load().find(key)
	return ok
}

func setOf(kind string, entries []string) (map[string]struct{}, error) {
	set := make(map[string]struct{}, len(entries))
	for i, k := range entries {
		if k == "" {
			return nil, fmt.Errorf("algo: key set: %s %d of %d is empty", kind, i+1, len(entries))
		}
		set[k] = struct{}{}
	}
	return set, nil
}

// AllowList admits the keys in allowed without limit, with [SourceOff], and
// lets l decide about all other keys. Check the origin of the keys: if users
// choose them, any user can take a key with an allowed prefix. It panics if l
// or allowed is nil.
func AllowList(l Limiter, allowed *KeySet) Limiter {
	return newAccessList("AllowList", l, allowed, unlimited{})
}

// DenyList denies the keys in denied, at any cost and for a peek too, with
// the Reason [Banned], for ever, and a Limit of 0, and lets l decide about all other keys. It
// panics if l or denied is nil.
func DenyList(l Limiter, denied *KeySet) Limiter {
	return newAccessList("DenyList", l, denied, denyAll{})
}

// accessList sends the keys of a set to one limiter and all others to another.
type accessList struct {
	wrapping
	keys   *KeySet
	listed Limiter
}

func newAccessList(constructor string, l Limiter, keys *KeySet, listed Limiter) Limiter {
	mustLimiter(l, constructor)
	if keys == nil {
		panic("algo: " + constructor + ": the key set is nil")
	}
	return &accessList{wrapping{l}, keys, listed}
}

func (a *accessList) limiterFor(key string) Limiter {
	if a.keys.Contains(key) {
		return a.listed
	}
	return a.limiter
}

// Choose returns the limiter that decides about key.
func (a *accessList) Choose(_ context.Context, key string) (Limiter, error) {
	return a.limiterFor(key), nil
}

// Unwrap returns the limiter of keys that are not listed, and the other.
func (a *accessList) Unwrap() []Limiter { return []Limiter{a.limiter, a.listed} }

// Acquire forwards to the limiter, unless the key is listed.
func (a *accessList) Acquire(ctx context.Context, key string, n int64) (Lease, error) {
	return a.limiterFor(key).Acquire(ctx, key, n)
}

// DenyAll denies every request, at any cost and for a peek too, with the Reason
// [Banned], for ever, and a Limit of 0: a plan that allows nothing, or a method that is closed.
func DenyAll() Limiter { return denyAll{} }

// denyAll denies every request forever.
type denyAll struct{}

// Acquire denies the request.
func (denyAll) Acquire(_ context.Context, _ string, n int64) (lease Lease, err error) {
	if n < 0 {
		return lease, costError(n)
	}
	lease.Decision = deniedForEver
	return lease, nil
}

var deniedForEver = Decision{Reason: Banned, RetryAfter: Forever, NextAfter: Forever, ResetAfter: Forever}

// Peek denies too.
func (denyAll) Peek(_ context.Context, _ string, n int64) (Decision, error) {
	if n < 0 {
		return Decision{}, costError(n)
	}
	return deniedForEver, nil
}

// OccupiesSlot reports false.
func (denyAll) OccupiesSlot() bool { return false }

// matcher finds the value of a key: by the key itself, else by its longest
// prefix. It is immutable; a nil matcher is empty.
type matcher[V any] struct {
	exact    map[string]V
	prefixes map[string]V
	lengths  []int // of the prefixes, longest first
}

func newMatcher[V any](exact, prefixes map[string]V) *matcher[V] {
	m := &matcher[V]{exact: maps.Clone(exact), prefixes: maps.Clone(prefixes)}
	for p := range prefixes {
		if !slices.Contains(m.lengths, len(p)) {
			m.lengths = append(m.lengths, len(p))
		}
	}
	slices.SortFunc(m.lengths, func(a, b int) int { return cmp.Compare(b, a) })
	return m
}

func (m *matcher[V]) find(key string) (v V, ok bool) {
	if m == nil {
		return v, false
	}
	if v, ok = m.exact[key]; ok {
		return v, true
	}
	for _, n := range m.lengths {
		if n <= len(key) {
			if v, ok = m.prefixes[key[:n]]; ok {
				return v, true
			}
		}
	}
	return v, false
}
