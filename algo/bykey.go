package algo

import (
	"context"
	"fmt"
)

// ByKey hands each request to the limiter that choose returns for it, for
// tiers or for limits of single keys. [Overrides] is a ready-made choice.
//
// If choose returns nil, the request fails with [ErrRequest]. To leave a key
// unlimited, return [Unlimited]. choose runs on every request and must be safe
// for concurrent use. It should return existing limiters: a new limiter has no
// record of earlier requests.
//
// [Describe] reports false, because the answer depends on the key. ByKey
// panics if choose is nil.
func ByKey(choose func(ctx context.Context, key string) Limiter) Limiter {
	if choose == nil {
		panic("algo: ByKey: the function is nil")
	}
	return byKey(choose)
}

type byKey func(ctx context.Context, key string) Limiter

func (choose byKey) limiterFor(ctx context.Context, key string) (Limiter, error) {
	if l := choose(ctx, key); l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("%w: ByKey: the function returned no limiter", ErrRequest)
}

// Acquire forwards to the limiter of the key.
func (choose byKey) Acquire(ctx context.Context, key string, n int64) (Lease, error) {
	l, err := choose.limiterFor(ctx, key)
	if err != nil {
		return Lease{}, err
	}
	return l.Acquire(ctx, key, n)
}

// Chooser is implemented by limiters of other packages that hand each request
// to another limiter, such as an operator's switch: compositions acquire from
// the chosen limiter directly, so that a [Batcher] behind it still decides in
// one step. Acquire must forward to the limiter of ChooseLimiter, which must not
// return nil. A type that embeds a Chooser and has its own Acquire needs its own
// ChooseLimiter too.
type Chooser interface {
	Limiter
	ChooseLimiter(ctx context.Context, key string) Limiter
}

// resolve follows the wrappers that only choose a limiter, to the limiter that
// decides about key.
func resolve(ctx context.Context, l Limiter, key string) (_ Limiter, err error) {
	for {
		switch wrapper := l.(type) {
		case *Switch:
			l = wrapper.current()
		case *accessList:
			l = wrapper.limiterFor(key)
		case byKey:
			if l, err = wrapper.limiterFor(ctx, key); err != nil {
				return nil, err
			}
		case Chooser:
			l = wrapper.ChooseLimiter(ctx, key)
		default:
			return l, nil
		}
	}
}

// mustLimiter panics at wiring time if a limiter is missing.
func mustLimiter(l Limiter, constructor string) {
	if l == nil {
		panic("algo: " + constructor + ": the limiter is nil")
	}
}
