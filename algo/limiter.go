package algo

import (
	"context"
	"errors"
	"fmt"
)

// Limiter decides, per key, whether n units may be spent now.
//
// Acquire never sleeps; an in-flight limiter with a queue is the one
// exception, it waits for its slot and is bounded by the context.
//
// The empty key is the limiter's own single bucket, for a limit that does not
// distinguish callers. n is the cost in units: 1 for a request, more for a
// dearer one; n = 0 peeks and changes nothing.
//
// A denial is a [Decision] with Allowed false, not an error. The error is for
// misuse ([ErrCost]) and infrastructure only.
//
// Implementations are safe for concurrent use.
type Limiter interface {
	Acquire(ctx context.Context, key string, n int64) (Lease, error)
}

// ErrCost reports a cost that no limit can weigh: a negative one, or, from
// [Wait], one that can never fit.
var ErrCost = errors.New("algo: cost out of range")

// ErrWait reports that admission would come later than the caller's context
// allows. Nothing stays charged.
var ErrWait = errors.New("algo: admission would outlast the context")

func costError(n int64) error {
	return fmt.Errorf("%w: n is %d, want 0 or more", ErrCost, n)
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
