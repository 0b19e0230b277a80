package algo

import "github.com/sluice-go/sluice/internal/keystore"

// engine is the part of a limiter of this package that decides; see [keyed].
type engine interface {
	// acquireAt is Acquire in place, at a reading of the clock that several
	// limiters share.
	acquireAt(lease *Lease, reading *keystore.Reading, key string, n int64) error
}

// hasEngine reports whether l is an engine and decides as that: a type of another
// package that embeds one may have an Acquire of its own.
func hasEngine(l Limiter) bool {
	switch l.(type) {
	case *TokenBucket, *LeakyBucket, *Pacer, *Nginx, *Strict, *SmoothBursty, *SmoothWarmingUp,
		*FixedWindow, *SlidingWindow, *SlidingLog, *MarkerLimiter:
		return true
	}
	return false
}
