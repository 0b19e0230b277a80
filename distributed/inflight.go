package distributed

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
	"github.com/sluice-go/sluice/internal/remote"
)

// InFlight makes a limit of n units in flight at the same time, 1 to 10000,
// for each key and over all instances. A lease holds its units until Release, and those of an
// instance that is gone are held for expiry, 1 s to 1 h. The store renews a lease three times as
// often, until its Release, so work may last as long as it likes.
// Its denials have the Reason [algo.Quota], and [algo.Overload] for the empty key, which all
// callers share.
//
// Bound: at most n units in flight, as long as Redis keeps its data, its clock does not step by
// the expiry and every instance reaches it once in each expiry. Otherwise each instance puts back
// what is missing when it finds Redis again, before it acquires more; what others acquire in
// between comes on top, until it is released. Releases wait for Redis
// while it is away, so all units are free within two probe intervals of its return; those that
// are lost (see [Stats]) free their units at the expiry. While Redis is away each instance admits up to its
// part of n, at least one unit, less its units in flight, and one request alone of whatever
// cost: N instances together at most max(n, N), or N times the largest cost.
//
// Do not use it as a lock: an instance that stalls for longer than the expiry
// goes on with units that others may hold. Do not use it for the capacity of a
// single instance; see the package adaptive.
func (s *Store) InFlight(name string, n int, expiry time.Duration) (*Limiter, error) {
	l, err := s.prepare("in-flight limit", name)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > maxUnits {
		return nil, l.errorf("n is %d, want 1 to %d", n, maxUnits)
	}
	if err := within("expiry", expiry, time.Second, time.Hour); err != nil {
		return nil, l.errorf("%w", err)
	}
	f := inFlight{limit: int64(n), expiry: expiry}
	l.slots = newSlots(expiry)
	l.slots.limiter, f.slots = l, l.slots
	l.replace(&f)
	return s.register(l)
}

// inFlight is a limit on units in flight, which unitset.lua decides.
type inFlight struct {
	limit  int64
	expiry time.Duration
	slots  *slots
}

func (f *inFlight) script() *remote.Script { return inFlightScript }

func (f *inFlight) holds() {}

func (f *inFlight) maxCost() int64 { return f.limit }

func (f *inFlight) acquireArgs(_ string, n int64) remote.Args {
	return remote.Args{opAcquire, f.expiry.Microseconds(), f.limit, possible(n, f.limit), newID(), 0, f.mark()}
}

// explain cannot know when work ends: RetryAfter is when enough units would
// expire, at most one second.
func (f *inFlight) explain(a remote.Answer, n int64) (algo.Decision, algo.Handle) {
	d := explainUnits(f, a, f.expiry.Microseconds(), n)
	if d.Reason == algo.Quota {
		d.Cause, d.RetryAfter = cause.Limit, min(d.RetryAfter, time.Second)
	}
	return d, unitsOf(a, n)
}

func (f *inFlight) refundArgs(h algo.Handle, n int64) remote.Args { return removeUnits(h, n) }

func (f *inFlight) mark() int64 { return markOf(f.expiry.Microseconds(), f.limit) }

func (f *inFlight) forceArgs(_ string, h algo.Handle, n int64) remote.Args {
	return remote.Args{opForce, f.expiry.Microseconds(), maxUnits, min(n, maxUnits), h.State[0], h.N, f.mark()}
}

func (f *inFlight) resetArgs(string) remote.Args { return remote.Args{opReset} }

func (f *inFlight) describe() algo.Description {
	return algo.Description{Quota: f.limit, Unit: algo.ConcurrentRequests, NeedsRelease: true}
}

func (f *inFlight) local(of instances, _ algo.Limiter) algo.Limiter {
	f.slots.resize(of.part(f.limit))
	return f.slots
}

// maxUnits bounds the units of a set in Redis.
const maxUnits = 10_000

func checkUnits(n int64) error {
	if n > maxUnits {
		return fmt.Errorf("rate: count is %d, want at most %d", n, maxUnits)
	}
	return nil
}
