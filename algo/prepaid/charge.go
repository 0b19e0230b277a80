package prepaid

import (
	"context"
	"math"

	"github.com/sluice-go/sluice/algo"
)

// charge is the side of First of a lease: what both have charged.
type charge struct {
	call
	plan, credits algo.Lease // zero: nothing yet
	planned, paid int64      // units, at the admission
	left          int64      // of the plan then
	looked        bool       // balance and debt are known
	balance, debt int64      // what credits can pay more, and then the plan
}

// newCharge returns the lease of planned and paid units, with the decision d. The plan has left
// units then.
func newCharge(c call, d algo.Decision, plan, credits algo.Lease, planned, paid, left int64) algo.Lease {
	c.ctx = context.WithoutCancel(c.ctx)
	of := &charge{call: c, plan: plan, credits: credits, planned: planned, paid: paid, left: max(left, 0)}
	return algo.NewLease(d, of, algo.Handle{Key: c.key, N: planned + paid})
}

// Release ends both charges, and gives both back if the work was canceled.
func (c *charge) Release(_ algo.Handle, o algo.Outcome) {
	c.credits.Release(o)
	c.plan.Release(o)
}

// Settle corrects both charges.
func (c *charge) Settle(_ algo.Handle, actual int64) {
	if actual > c.planned+c.paid+c.left && !c.looked {
		c.looked = true
		c.look()
	}
	paid := c.fromCredits(actual)
	c.credits.Settle(paid)
	c.plan.Settle(actual - paid)
}

// look asks what credits have left, and takes leases of both.
func (c *charge) look() {
	if c.paid == 0 {
		c.credits, _ = c.call.credits.Acquire(c.ctx, c.key, 0)
	}
	if c.planned == 0 && c.paid > 0 {
		c.plan, _ = c.call.plan.Acquire(c.ctx, c.key, 0)
	}
	c.balance, c.debt = max(c.credits.Remaining, 0), c.plan.Limit
	switch {
	case !c.plan.Allowed:
		c.debt = 0
	case !c.plan.InForce():
		c.balance, c.debt = 0, math.MaxInt64
	}
}

// fromCredits is how many of actual units credits pay. What comes back is theirs first. Units
// above the charge are the plan's as far as it had some left, then theirs as far as the balance
// goes, then debt of the plan, and the rest is theirs again: the balance falls below zero.
func (c *charge) fromCredits(actual int64) int64 {
	if back := c.planned + c.paid - actual; back > 0 {
		return max(c.paid-back, 0)
	}
	more := max(actual-c.planned-c.paid-c.left, 0)
	return c.paid + more - min(max(more-c.balance, 0), c.debt)
}
