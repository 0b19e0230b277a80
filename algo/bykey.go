package algo

import (
	"context"
	"fmt"
)

// ByKey passes each request to the limiter that choose returns, for tiers or for limits of single
// keys, such as those in a map.
//
// A nil result fails the request; for an unlimited key return [Unlimited]. choose runs once for
// every request and peek, and must be safe for concurrent use. It should return existing limiters:
// a new limiter has no record of earlier requests.
//
// among lists all limiters that choose may return, if they are known, for [Walk]. ByKey panics if
// choose is nil.
func ByKey(choose func(ctx context.Context, key string) Limiter, among ...Limiter) Limiter {
	if choose == nil {
		panic("algo: ByKey: the function is nil")
	}
	return &byKey{choose, among}
}

type byKey struct {
	choose func(ctx context.Context, key string) Limiter
	among  []Limiter
}

// Choose returns the limiter of the key.
func (b *byKey) Choose(ctx context.Context, key string) (Limiter, error) {
	if l := b.choose(ctx, key); l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("%w: ByKey: the function returned no limiter", errRequest)
}

// Unwrap returns the listed limiters.
func (b *byKey) Unwrap() []Limiter { return b.among }

// Acquire forwards to the limiter of the key.
func (b *byKey) Acquire(ctx context.Context, key string, n int64) (Lease, error) {
	l, err := b.Choose(ctx, key)
	if err != nil {
		return Lease{}, err
	}
	return l.Acquire(ctx, key, n)
}
