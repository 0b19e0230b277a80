package distributed

import (
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/cause"
)

// inFlight is a limit on units in flight; unitset.lua decides.
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

// explain sets RetryAfter to when enough units expire, at most one second, because
// work may end earlier.
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
