package admission

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
	"github.com/sluice-go/sluice/internal/warning"
)

// Charge does the part of Admit that a stream needs for each message, with the keys in v. A
// message that its quota denies waits up to wait.
func (ps *Policies[C]) Charge(ctx context.Context, call C, lease *algo.Lease, v *Verdict[C], wait time.Duration) {
	parts := v.Parts()
	for i := range parts {
		p := &parts[i]
		if p.Cost == nil {
			continue
		}
		if p.Request.N = p.Cost(call); p.Request.N < 0 {
			one := *p
			v.only(p.Policy, p.Request.Key)
			v.room[0] = one
			p.undecided(ctx, v, errNegative)
			return
		}
	}
	if ps.Observe != nil {
		v.started = time.Now()
	}
	err := acquire(ctx, lease, parts, wait)
	ps.decided(ctx, lease, v, wait > 0, err)
}

// decided completes v after the limiters have filled in lease, or failed with err. waited
// reports that the admission's Delay has already been slept.
func (ps *Policies[C]) decided(ctx context.Context, lease *algo.Lease, v *Verdict[C], waited bool, err error) {
	parts := v.Parts()
	if len(parts) == 1 { // its decision is that of v
		parts = nil
	}
	for i := range parts {
		parts[i].Decision = lease.Part(i).Decision
	}
	delay := lease.Delay
	ps.conclude(ctx, lease, v, waited, err)
	for i := range parts {
		parts[i].waited(delay, lease.Allowed)
	}
	if ps.unobserved {
		logTrials(v.Parts())
	}
}

// logTrials logs denials of limits on trial that a limiter has chosen without listing them.
func logTrials[C any](parts []Part[C]) {
	for i := range parts {
		if p := &parts[i]; p.Decision.Trial != algo.Admitted {
			warning.Trial.Log("policy", p.Name)
		}
	}
}

// acquire charges all of parts or none.
func acquire[C any](ctx context.Context, lease *algo.Lease, parts []Part[C], wait time.Duration) (err error) {
	var room [Few]algo.Request
	reqs := room[:0]
	for i := range parts {
		reqs = append(reqs, parts[i].Request)
	}
	if wait <= 0 {
		*lease, err = algo.AcquireAll(ctx, reqs...)
		return err
	}
	return waitAtMost(ctx, lease, reqs, wait)
}

// waitAtMost charges all of reqs or none, and waits up to wait for room.
func waitAtMost(ctx context.Context, lease *algo.Lease, reqs []algo.Request, wait time.Duration) (err error) {
	patient := ctx
	if wait < TimeLeft(ctx) {
		var cancel context.CancelFunc
		patient, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	if *lease, err = algo.WaitAll(patient, reqs...); err == nil || ctx.Err() != nil {
		return err
	}
	if patient.Err() != nil { // the wait is over: ask once more, without waiting
		*lease, err = algo.AcquireAll(algo.Tentative(ctx), reqs...)
	}
	if d := &lease.Decision; d.Reason != algo.Admitted {
		if err = nil; d.Reason == algo.Quota && d.RetryAfter <= wait && d.RetryAfter > TimeLeft(ctx) {
			d.Cause = cause.Deadline
		}
	}
	return err
}

// elapse subtracts a delay that has been slept from the waits of d.
func elapse(d *algo.Decision, slept time.Duration) {
	d.NextAfter = max(d.NextAfter-slept, 0)
	d.ResetAfter = max(d.ResetAfter-slept, 0)
}

// deny turns a refunded admission with a delay into a denial.
func deny(d *algo.Decision, delay time.Duration) {
	d.Allowed, d.Reason, d.Cause, d.RetryAfter = false, algo.Quota, cause.Deadline, delay
	d.NextAfter = min(d.NextAfter, delay) // the charge is no longer before it
}

// conclude classifies the answer of the limiters in v.
func (ps *Policies[C]) conclude(ctx context.Context, lease *algo.Lease, v *Verdict[C], waited bool, err error) {
	d := &lease.Decision
	switch {
	case err != nil:
		v.Parts()[0].undecided(ctx, v, err)
		return
	case !d.Allowed:
		if d.Reason == algo.Overload && d.RetryAfter == algo.Forever {
			v.Err = context.DeadlineExceeded // only a request without a deadline could fit
		}
	case waited || algo.Sleep(ctx, d.Delay) == nil:
		elapse(d, d.Delay)
		*v.Decision() = *d
		return
	default:
		lease.Release(algo.Canceled)
		deny(d, d.Delay)
	}
	*v.Decision() = *d
	v.denied(ctx)
}

// waited applies the delay of the whole call to the decision of one policy.
func (p *Part[C]) waited(delay time.Duration, admitted bool) {
	d := &p.Decision
	switch {
	case delay <= 0:
	case admitted:
		elapse(d, delay)
	case d.Delay == delay:
		deny(d, delay)
	case d.Delay == 0: // its charge was given back
		d.Remaining = min(d.Remaining+p.Request.N, d.Limit)
	}
}
