package distributed

import (
	"math/rand/v2"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// slidingLog counts the units of the last period; unitset.lua decides.
type slidingLog struct{ window }

func newSlidingLog(s algo.Spec) (limit, error) {
	w, err := newWindow(s)
	return &slidingLog{w}, err
}

// newID returns a random id for units, so that no two instances choose the same.
func newID() int64 { return rand.Int64() }

func (u *slidingLog) script() *remote.Script { return logScript }

func (u *slidingLog) holds() {}

func (u *slidingLog) acquireArgs(_ string, n int64) remote.Args {
	return remote.Args{opAcquire, u.period, u.quota, possible(n, u.quota), newID(), 0, u.mark()}
}

func (u *slidingLog) explain(a remote.Answer, n int64) (algo.Decision, algo.Handle) {
	return explainUnits(u, a, u.period, n), unitsOf(a, n)
}

// explainUnits reads the reply of unitset.lua about units that live for long microseconds.
func explainUnits(l limit, a remote.Answer, long, n int64) algo.Decision {
	count, next, enough, last := a.Reply[0], a.Reply[1], a.Reply[2], a.Reply[3]
	if a.Flag() == flagBanned {
		return whileBanned(l, n, last-a.Now)
	}
	limit := l.maxCost()
	if a.Flag() == flagAdmitted && n > 0 && n <= limit {
		count, last = count+n, max(last, a.Now+long)
	}
	d := algo.Decision{Limit: limit, Remaining: max(limit-count, 0)}
	if count > 0 {
		d.NextAfter, d.ResetAfter = micros(next-a.Now), micros(last-a.Now)
	}
	switch {
	case n > limit:
		d.Reason, d.RetryAfter = algo.Never, algo.Forever
	case n == 0 || a.Flag() == flagAdmitted:
		d.Allowed = true
	default:
		d.Reason, d.RetryAfter = algo.Quota, micros(enough-a.Now)
	}
	return d
}

func (u *slidingLog) mark() int64 { return markOf(u.period, u.quota) }

func (u *slidingLog) refundArgs(h algo.Handle, n int64) remote.Args { return removeUnits(h, n) }

// unitsOf returns the handle of n units: their id and mark are those of the request.
func unitsOf(a remote.Answer, n int64) algo.Handle {
	return algo.Handle{N: n, State: [3]int64{a.Args[4], a.Args[6]}}
}

// removeUnits removes the last n units of a charge, even after a change of the limit. The set
// knows each unit, so later units of a settlement go too. Of a lease that was charged in part it
// removes all units or none.
func removeUnits(h algo.Handle, n int64) remote.Args {
	all := min(h.N, maxExact)
	if n < h.N {
		n = min(n, all-1)
	}
	return remote.Args{opRefund, 0, 0, min(n, all), h.State[0], all, h.State[1]}
}

// forceArgs adds n units, at most one more than the quota: they count for a period, as all others.
func (u *slidingLog) forceArgs(_ string, h algo.Handle, n int64) remote.Args {
	return remote.Args{opForce, u.period, maxExact, min(n, u.quota+1), h.State[0], h.N, u.mark()}
}

func (u *slidingLog) resetArgs(string) remote.Args { return remote.Args{opReset} }
