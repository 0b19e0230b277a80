package algo

import (
	"github.com/sluice-go/sluice/algo/internal/engine"
	"github.com/sluice-go/sluice/internal/warning"
)

// Lease is the result of Acquire: the [Decision], and the duty to call Release when the work ends. An
// in-flight limiter frees its slot in Release; a rate limiter has nothing to free:
//
//	lease, err := limiter.Acquire(ctx, user, 1)
//	if err != nil || !lease.Allowed { ... }
//	defer lease.Release(algo.Succeeded)
//
// A Lease is a value; like a mutex it must not be copied after first use. The zero Lease is harmless.
// A Lease is not safe for concurrent use.
type Lease struct {
	Decision
	releaser Releaser
	handle   Handle
}

// Outcome is the result of the work that a limiter admitted: Succeeded, Failed or
// Canceled, or one of them | Untimed.
type Outcome uint8

// The outcomes.
const (
	Succeeded Outcome = iota
	// Failed work stays charged.
	Failed
	// Canceled work was not done: its charge is refunded as far as it still weighs.
	Canceled
	// Untimed is a flag: the duration of the work does not measure the service (a stream, a hijacked
	// connection, a cache hit, a slow or departed client). Adaptive limits learn from timed outcomes
	// only.
	Untimed Outcome = 1 << 2
)

// Result returns the outcome without the flag.
func (o Outcome) Result() Outcome { return o &^ Untimed }

// Timed reports whether the duration of the work counts: the flag is not set, and the
// work was done.
func (o Outcome) Timed() bool { return o < Canceled }

// String returns the outcome in lower case, for logs: "failed", "failed, untimed".
func (o Outcome) String() string {
	name := nameOf(int(o.Result()), "succeeded", "failed", "canceled")
	if o != o.Result() {
		name += ", untimed"
	}
	return name
}

// Releaser is the limiter's side of a [Lease], for packages that implement
// [Limiter]. Both methods receive the handle that the limiter filled in at
// admission.
type Releaser interface {
	// Release is called at most once for each lease.
	Release(h Handle, o Outcome)
	// Settle corrects the cost of an admission from h.N to actual units. It may run several times
	// before Release; h.N is the latest amount.
	Settle(h Handle, actual int64)
}

// Handle identifies a charge when its lease is settled or released. Only the
// limiter that filled it in interprets it.
type Handle struct {
	Key   string   // the key that was charged
	N     int64    // the units charged
	At    int64    // the instant from which they count, in the limiter's time
	State [3]int64 // private to the limiter
}

// NewLease makes a lease for packages that implement [Limiter]. A denial, or a nil
// releaser, makes a lease with nothing to release.
func NewLease(d Decision, r Releaser, h Handle) Lease {
	if !d.Allowed {
		r = nil
	}
	return Lease{Decision: d, releaser: r, handle: h}
}

// FillLease makes l a lease of r in place and returns its handle for the limiter to fill in. It
// keeps the Decision, which must be set before; after a denial there is nothing to release. It
// saves [NewLease]'s copy of 128 bytes, for limiters that decide in about 50 ns
// (BenchmarkTokenBucket).
func FillLease(l *Lease, r Releaser) *Handle {
	l.releaser = nil
	if l.Allowed {
		l.releaser = r
	}
	l.handle = Handle{}
	return &l.handle
}

// Release ends the lease. It is idempotent and does nothing on a denied or zero
// lease. Defer it, so that a panicking handler frees its slot too.
func (l *Lease) Release(o Outcome) {
	if r := l.releaser; r != nil {
		l.releaser = nil
		if _, ok := r.(*corrections); ok && o.Result() != Canceled {
			return // its Release would do nothing: copying the handle takes 6 ns of 55 (BenchmarkTokenBucket)
		}
		r.Release(l.handle, o)
	}
}

// Settle corrects the cost to actual units: reserve an estimate, run, settle. A lower cost refunds the
// difference as far as it still weighs; units that an earlier call added count from the admission. A
// higher cost is charged even if it does not fit: the key pays it off before its next admission. The
// last call counts, except that [NewSlidingLog] and shares do not refund units that an earlier call
// added. A lease of cost 0 can be settled too. Settle does nothing after Release, on a denied lease,
// and with a negative amount, which is logged once with the code algo.negative_usage.
//
// On the lease of several limits it corrects all. If their costs differ, or one of them, at any depth,
// counts requests in flight, it changes nothing and logs that once with the code algo.settle_mixed.
// Settle these, and limits of different units with the same cost, by [Lease.Part].
func (l *Lease) Settle(actual int64) {
	switch {
	case l.releaser == nil || actual == l.handle.N:
		return
	case actual < 0:
		warning.NegativeUsage.Log()
		return
	}
	l.releaser.Settle(l.handle, actual)
	if l.handle.N != mixedCost { // parts are also settled alone
		l.handle.N = actual
	}
}

// mixedCost is the cost of a composite lease. Settle never receives it, because each part has a
// cost of its own.
const mixedCost = -1

// corrections releases and settles the leases of a RateLimiter.
type corrections struct{ engine engine.Engine }

// Release refunds a canceled admission as far as it still weighs; any other outcome keeps the
// charge.
func (c *corrections) Release(h Handle, o Outcome) {
	if o.Result() == Canceled && h.N > 0 {
		c.Settle(h, 0)
	}
}

// Settle corrects the cost of an admission.
func (c *corrections) Settle(h Handle, actual int64) {
	c.engine.Settle(h.Key, h.charge(), actual)
}
