package algo

// Lease is what Acquire returns: the [Decision], and the duty to call Release
// once the work is over.
//
// A rate limiter has nothing to release, so forgetting it costs nothing there;
// an in-flight limiter frees its slot in Release. Callers that want to work
// with any limiter defer it:
//
//	lease, err := limiter.Acquire(ctx, user, 1)
//	if err != nil || !lease.Allowed { ... }
//	defer lease.Release(algo.Succeeded)
//
// A Lease is a value; like a mutex it must not be copied once it is in use.
// The zero Lease is harmless. A Lease is not safe for concurrent use.
type Lease struct {
	Decision
	releaser Releaser
	handle   Handle
}

// Outcome tells a limiter how the work that it admitted went.
type Outcome uint8

// The outcomes.
const (
	// Succeeded: the work was done.
	Succeeded Outcome = iota
	// Failed: the work was done and went wrong; it counts.
	Failed
	// Ignored: it counts, but its duration must teach nothing (a stream, a
	// hijacked connection, a cache hit).
	Ignored
	// Canceled: the work was not done; what the charge still weighs is given
	// back.
	Canceled
)

// String returns the outcome in lower case, for logs.
func (o Outcome) String() string {
	return nameOf(int(o), "succeeded", "failed", "ignored", "canceled")
}

// Releaser is the limiter's side of a [Lease], for packages that implement
// [Limiter]. Both methods get the handle that the limiter made at admission.
type Releaser interface {
	// Release is called at most once for each lease.
	Release(h Handle, o Outcome)
	// Settle corrects the cost of an admission from h.N to actual units. It
	// may be called several times before Release; h.N is what the last call
	// left.
	Settle(h Handle, actual int64)
}

// Handle is what a limiter needs to know again when a lease is settled or
// released. Its meaning belongs to the limiter that made it.
type Handle struct {
	Key   string   // the key that was charged
	N     int64    // the units charged
	At    int64    // the instant from which they count, in the limiter's time
	State [3]int64 // whatever else the limiter needs
}

// NewLease makes a lease for packages that implement [Limiter]. A nil
// releaser means that there is nothing to release.
func NewLease(d Decision, r Releaser, h Handle) Lease {
	return Lease{Decision: d, releaser: r, handle: h}
}

// FillLease makes l a lease of r in place and returns its handle, to be filled
// in; the Decision stays as it is. It does what [NewLease] does, for limiters
// that decide in some 50 ns: a Lease is 128 bytes, and copying it is noticeable.
func FillLease(l *Lease, r Releaser) *Handle {
	l.releaser, l.handle = r, Handle{}
	return &l.handle
}

// Release ends the lease. It is idempotent, does nothing on a denied or zero
// lease, and belongs in a defer: a panicking handler must free its slot too.
func (l *Lease) Release(o Outcome) {
	if r := l.releaser; r != nil {
		l.releaser = nil
		r.Release(l.handle, o)
	}
}

// Settle corrects the cost to actual units once the true cost is known:
// reserve an estimate, run, settle. Less gives back what the difference still
// weighs; more is charged even where it does not fit, so that the key pays it
// off before its next admission. Call it before Release; afterwards, on a
// denied lease, or with a negative amount it does nothing.
func (l *Lease) Settle(actual int64) {
	if l.releaser == nil || actual < 0 || actual == l.handle.N {
		return
	}
	l.releaser.Settle(l.handle, actual)
	l.handle.N = actual
}
