package algo

import (
	"context"
	"fmt"
)

// ByKey hands each request to the limiter that choose returns for it, for
// tiers or for limits of single keys, such as those in a map.
//
// If choose returns nil, the request fails with an error. To leave a key
// unlimited, return [Unlimited]. choose runs once for every request, also for a
// peek, and must be safe for concurrent use. It should return existing limiters: a
// new limiter has no record of earlier requests.
//
// among is all limiters that choose may return, if they are known: [Walk] finds them then.
// ByKey panics if choose is nil.
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

// Unwrap returns the limiters that were listed.
func (b *byKey) Unwrap() []Limiter { return b.among }

// Acquire forwards to the limiter of the key.
func (b *byKey) Acquire(ctx context.Context, key string, n int64) (Lease, error) {
	l, err := b.Choose(ctx, key)
	if err != nil {
		return Lease{}, err
	}
	return l.Acquire(ctx, key, n)
}
