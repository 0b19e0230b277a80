package httpmw

import (
	"context"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// admit decides on r. If it returns false, the request has been answered. If
// it returns true and the lease is zero, the request passes unlimited.
func (g *guard) admit(lease *algo.Lease, w http.ResponseWriter, r *http.Request) bool {
	if len(g.rules) > 1 {
		return g.admitSeveral(lease, w, r)
	}
	a := asking{guard: g, rule: g.rules[0], w: w, r: r}
	key, n, v, err := a.rule.weigh(r, g.missing)
	a.key, a.n = key, n
	switch {
	case err != nil:
		return a.undecided(err)
	case v == pass:
		return true
	case v == refuse:
		a.deny(keyless())
		return false
	}
	start := g.start()
	*lease, err = a.rule.limiter.Acquire(r.Context(), key, n)
	if err != nil {
		a.stop(start)
		return a.undecided(err)
	}
	if lease.Allowed && lease.Delay > 0 {
		sleepOut(r.Context(), lease)
	}
	a.stop(start)
	g.advertise(w.Header(), a.rule, &lease.Decision)
	if !lease.Allowed {
		a.deny(&lease.Decision)
		return false
	}
	if g.observe != nil {
		a.tell(Allowed, &lease.Decision, a.fields(&lease.Decision), 0, nil)
	}
	return true
}

// sleepOut waits for the Delay of an admission. If the context ends before, it
// gives the charge back and turns the admission into a denial.
func sleepOut(ctx context.Context, lease *algo.Lease) {
	delay := lease.Delay
	if algo.Sleep(ctx, delay) == nil {
		elapse(&lease.Decision, delay)
		return
	}
	lease.Release(algo.Canceled)
	deny(&lease.Decision, delay)
}

// elapse is d as it looks after d has been slept out.
func elapse(d *algo.Decision, slept time.Duration) {
	d.NextAfter = max(d.NextAfter-slept, 0)
	d.ResetAfter = max(d.ResetAfter-slept, 0)
}

// deny turns an admission with a delay, which has been given back, into the
// denial that says so.
func deny(d *algo.Decision, delay time.Duration) {
	d.Allowed, d.Reason, d.RetryAfter = false, algo.Quota, delay
	d.NextAfter = min(d.NextAfter, delay) // the charge no longer stands before it
}
