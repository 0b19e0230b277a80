package algo

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
)

// matcher finds what belongs to a key: by the key itself, else by its longest
// prefix. It is immutable.
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

// KeySet is a set of keys, given one by one and by their prefixes, for
// [AllowList] and [DenyList]. It is replaced as a whole while it is in use. The
// zero KeySet is empty. Looking a key up takes one step for the key and one for
// each length that prefixes have, and allocates nothing.
type KeySet struct {
	m atomic.Pointer[matcher[struct{}]]
}

// NewKeySet makes a set of the keys in exact and all keys that begin with one
// of prefixes. Neither may contain the empty string, as a line that went
// missing would: it stands for the limiter's own bucket, or for every key.
func NewKeySet(exact, prefixes []string) (*KeySet, error) {
	s := new(KeySet)
	if err := s.Set(exact, prefixes); err != nil {
		return nil, err
	}
	return s, nil
}

// Set replaces the set, at once for all later requests. With an error the set
// stays as it was.
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

func setOf(what string, of []string) (map[string]struct{}, error) {
	set := make(map[string]struct{}, len(of))
	for i, k := range of {
		if k == "" {
			return nil, fmt.Errorf("algo: key set: %s %d of %d is empty", what, i+1, len(of))
		}
		set[k] = struct{}{}
	}
	return set, nil
}

// AllowList admits the keys in free without limit, with Source Off, and lets l
// decide about all others. Mind who can choose a key: a prefix of keys that
// users make up frees whoever takes it. It panics if l or free is nil.
func AllowList(l Limiter, free *KeySet) Limiter {
	return newListed("AllowList", l, free, unlimited{})
}

// DenyList denies the keys in banned, whatever the cost and peeks too, with
// Reason Never and a limit of 0, and lets l decide about all others. It panics
// if l or banned is nil.
func DenyList(l Limiter, banned *KeySet) Limiter {
	return newListed("DenyList", l, banned, refusing{})
}

// listed sends the keys of a set to one limiter and all others to another.
type listed struct {
	limiter Limiter
	keys    *KeySet
	instead Limiter
}

func newListed(what string, l Limiter, keys *KeySet, instead Limiter) Limiter {
	mustLimiter(l, what)
	if keys == nil {
		panic("algo: " + what + ": the key set is nil")
	}
	return &listed{l, keys, instead}
}

func (w *listed) choose(_ context.Context, key string) (Limiter, error) {
	if w.keys.Contains(key) {
		return w.instead, nil
	}
	return w.limiter, nil
}

// Acquire forwards to the limiter, unless the key is listed.
func (w *listed) Acquire(ctx context.Context, key string, n int64) (Lease, error) {
	return acquireChosen(ctx, w, key, n)
}

// Describe forwards to the limiter.
func (w *listed) Describe() (Description, bool) { return Describe(w.limiter) }

// SetSpec applies spec to the limiter; see [Spec.Apply].
func (w *listed) SetSpec(spec Spec) error { return spec.Apply(w.limiter) }
