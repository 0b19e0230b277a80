package algo

import "context"

// Limiter decides, per key, whether n units may be spent now.
//
// Acquire never sleeps, except in an in-flight limiter with a queue, at most until ctx ends. The empty
// key is a bucket of its own, for a limit that does not distinguish clients. n is the cost: 1 for a
// request, more for an expensive one. n = 0 reports the state and changes nothing; it is denied only
// if the key is banned or finds the table full ([DenyNew]), and by [DenyAll].
//
// A denial is a [Decision] with Allowed false. Errors report misuse ([ErrCost]) and infrastructure
// failures only. Implementations are safe for concurrent use.
type Limiter interface {
	Acquire(ctx context.Context, key string, n int64) (Lease, error)
}

// Request asks one limiter for N units under Key; see [AcquireAll].
type Request struct {
	Limiter Limiter
	Key     string
	N       int64
}

// Must returns v and panics if err is not nil. It is for package variables:
//
//	var perUser = algo.Must(algo.NewTokenBucket(algo.PerSecond(100)))
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// mustLimiter panics if a limiter is missing, at construction.
func mustLimiter(l Limiter, constructor string) {
	if l == nil {
		panic("algo: " + constructor + ": the limiter is nil")
	}
}
