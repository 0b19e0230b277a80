package algo

import (
	"context"
	"slices"
)

// Batcher is implemented by the limiters of a backend that decides several requests in one atomic
// step, such as a store with server-side scripts. [AcquireAll] hands adjacent requests of one
// backend to the Batcher of the first of them. A request without such a neighbor goes to Acquire,
// so a type that embeds a Batcher and overrides Acquire must override the other methods too.
type Batcher interface {
	Limiter

	// Batches reports whether one AcquireBatch of this limiter can decide both requests. a.Limiter is
	// the receiver; b.Limiter is any limiter. AcquireAll calls it for a and each request that follows,
	// so the result may depend only on the backend and, if they determine the reach of one step, the
	// keys.
	Batches(a, b Request) bool

	// AcquireBatch charges all of reqs or none, in one atomic step, and writes the answer to reqs[i]
	// into leases[i]; both have the same length.
	//
	//   - Each answer is the Decision of that one limit. If all are Allowed, all are charged, and each
	//     lease is released and settled alone.
	//   - If one is denied, nothing stays charged and no lease needs a release. Requests that would
	//     fit are still Allowed, and each denied one has the RetryAfter of its own N.
	//   - Requests for the same limiter and key add up in the order of reqs: each is answered for its
	//     N plus the N of those before it, whether or not they fit.
	//   - N = 0 peeks; N is never negative.
	//   - An error means that nothing stays charged, as far as the backend can ensure it; leases is
	//     then ignored. A limiter that decides without its backend instead of failing does so here
	//     too.
	//   - reqs and leases belong to the caller and must not be retained.
	AcquireBatch(ctx context.Context, reqs []Request, leases []Lease) error

	// PeekBatch writes the answers of AcquireBatch and charges nothing. Callers read only the Decision
	// of each lease.
	PeekBatch(ctx context.Context, reqs []Request, leases []Lease) error
}

// runEnd returns the end of the run of parts from from on that one step decides.
func runEnd(parts []Request, from int) int {
	end := from + 1
	if end == len(parts) {
		return end
	}
	if b, ok := parts[from].Limiter.(Batcher); ok {
		for end < len(parts) && b.Batches(parts[from], parts[end]) {
			end++
		}
	}
	return end
}

// acquireBatch acquires a run of parts of one backend. It passes a copy: if the Batcher could
// retain the list, every caller of AcquireAll would pay an allocation.
func acquireBatch(ctx context.Context, run []Request, leases []Lease) error {
	clear(leases)
	return run[0].Limiter.(Batcher).AcquireBatch(ctx, slices.Clone(run), leases)
}

// peekBatch peeks the backend of reqs[0]. After an error all leases are zero.
func peekBatch(ctx context.Context, reqs []Request, leases []Lease) error {
	clear(leases)
	err := reqs[0].Limiter.(Batcher).PeekBatch(ctx, reqs, leases)
	for i := range leases {
		leases[i] = Lease{Decision: leases[i].Decision} // nothing to release
	}
	if err != nil {
		clear(leases)
	}
	return err
}
