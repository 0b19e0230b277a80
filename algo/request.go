package algo

import (
	"context"
	"errors"
	"fmt"
)

// Request asks one limiter for n units under a key; see [AcquireAll].
type Request struct {
	Limiter Limiter
	Key     string
	N       int64
}

// ErrRequest reports requests that cannot be decided because of how they were
// put together: an empty list, a Request without a Limiter, a [ByKey] that
// chose nil.
var ErrRequest = errors.New("algo: invalid request")

// Batcher is implemented by the limiters of a backend that decides several
// requests in one atomic step, such as a store with server-side scripts.
// [AcquireAll] hands requests that stand together and belong together to the
// Batcher of the first of them. A lone request goes to Acquire as usual.
type Batcher interface {
	Limiter

	// Batches reports whether one AcquireBatch of this limiter can decide both
	// requests. a.Limiter is the receiver; b.Limiter is any limiter. It is
	// asked for a and each of the requests that follow it, so it must not
	// depend on anything but the backend and, where the keys decide what one
	// step can reach, the keys.
	Batches(a, b Request) bool

	// AcquireBatch charges all of reqs or none, in one atomic step, and writes
	// the answer to reqs[i] to leases[i]; both have the same length.
	//
	//   - Each answer is the own Decision of that limit. If all are Allowed,
	//     all are charged, and each lease is released and settled by itself.
	//   - If one is denied, nothing stays charged, and no lease has anything to
	//     release. Those that would have been admitted are Allowed all the
	//     same, and every denied one has the RetryAfter of its own N.
	//   - Requests for the same limiter and key add up in the order of reqs:
	//     each is answered for its N and that of those before it together,
	//     whether or not they fit.
	//   - N = 0 peeks; N below 0 never arrives here.
	//   - An error means that nothing stays charged, as far as that can be
	//     brought about; leases is then ignored. What the backend does instead
	//     of an error when its server is away, it does here too.
	//   - reqs and leases belong to the caller: do not keep them.
	AcquireBatch(ctx context.Context, reqs []Request, leases []Lease) error

	// PeekBatch answers what AcquireBatch would, and charges nothing. Only the
	// Decision of each lease is read.
	PeekBatch(ctx context.Context, reqs []Request, leases []Lease) error
}

// validate finds what is wrong with reqs before anything is charged.
func validate(reqs []Request) error {
	if len(reqs) == 0 {
		return fmt.Errorf("%w: no requests", ErrRequest)
	}
	for i := range reqs {
		if reqs[i].Limiter == nil {
			return fmt.Errorf("%w: request %d of %d has no limiter", ErrRequest, i+1, len(reqs))
		}
		if reqs[i].N < 0 {
			return fmt.Errorf("request %d of %d: %w", i+1, len(reqs), costError(reqs[i].N))
		}
	}
	return nil
}

// partError names the request that failed. It does not quote the key, which
// may be a secret.
func partError(reqs int, l *leaf, err error) error {
	return fmt.Errorf("algo: request %d of %d (%T): %w", l.owner+1, reqs, l.Limiter, err)
}
