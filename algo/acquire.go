package algo

import "context"

// Acquire is not a method of [keyed]: the compiler copies the result of a generic method
// once more, and for a Lease that is a fifth of the time (BenchmarkTokenBucket).

// Acquire charges n units to key if they fit; see [Limiter]. It ignores ctx,
// because it never waits. A negative n is [ErrCost].
func (b *TokenBucket) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	err = b.acquireAt(&lease, nil, key, n)
	return lease, err
}

// Acquire charges n units to key if they fit; see [Limiter]. It ignores ctx,
// because it never waits. A negative n is [ErrCost].
func (b *LeakyBucket) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	err = b.acquireAt(&lease, nil, key, n)
	return lease, err
}

// Acquire charges n units to key if they fit; see [Limiter]. It ignores ctx,
// because it never waits. A negative n is [ErrCost].
func (p *Pacer) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	err = p.acquireAt(&lease, nil, key, n)
	return lease, err
}

// Acquire charges n units to key if they fit; see [Limiter]. It ignores ctx,
// because it never waits. A negative n is [ErrCost].
func (l *Nginx) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	err = l.acquireAt(&lease, nil, key, n)
	return lease, err
}

// Acquire charges n units to key if they fit; see [Limiter]. It ignores ctx,
// because it never waits. A negative n is [ErrCost].
func (l *SmoothBursty) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	err = l.acquireAt(&lease, nil, key, n)
	return lease, err
}

// Acquire charges n units to key if they fit; see [Limiter]. It ignores ctx,
// because it never waits. A negative n is [ErrCost].
func (l *SmoothWarmingUp) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	err = l.acquireAt(&lease, nil, key, n)
	return lease, err
}

// Acquire charges n units to key if they fit; see [Limiter]. It ignores ctx,
// because it never waits. A negative n is [ErrCost].
func (w *FixedWindow) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	err = w.acquireAt(&lease, nil, key, n)
	return lease, err
}

// Acquire charges n units to key if they fit; see [Limiter]. It ignores ctx,
// because it never waits. A negative n is [ErrCost].
func (w *SlidingWindow) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	err = w.acquireAt(&lease, nil, key, n)
	return lease, err
}

// Acquire charges n units to key if they fit; see [Limiter]. It ignores ctx,
// because it never waits. A negative n is [ErrCost].
func (l *Strict) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	err = l.acquireAt(&lease, nil, key, n)
	return lease, err
}

// Acquire charges n units to key if they fit; see [Limiter]. It ignores ctx,
// because it never waits. A negative n is [ErrCost].
func (l *SlidingLog) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	err = l.acquireAt(&lease, nil, key, n)
	return lease, err
}

// Acquire charges n units to key if they fit; see [Limiter]. It ignores ctx,
// because it never waits. A negative n is [ErrCost].
func (l *MarkerLimiter) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	err = l.acquireAt(&lease, nil, key, n)
	return lease, err
}

// Acquire charges n units to key if they fit; see [Limiter]. It ignores ctx,
// because it never waits. A negative n is [ErrCost].
func (s *Share) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	err = s.acquireAt(&lease, nil, key, n)
	return lease, err
}
