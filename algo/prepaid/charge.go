package prepaid

import (
	"context"

	"github.com/sluice-go/sluice/algo"
)

// charge is the releaser of First's leases: the charges to plan and credits.
type charge struct {
	call
	plan, credits algo.Lease // zero: nothing yet
	planned, paid int64      // units, at the admission
	left          int64      // units that the plan had left then
	asked         bool       // credits is a lease
}

// newCharge returns the lease of planned and paid units, with the decision d; left is what the plan
// has left.
func newCharge(c call, d algo.Decision, plan, credits algo.Lease, planned, paid, left int64) algo.Lease {
	c.ctx = context.WithoutCancel(c.ctx)
	of := &charge{call: c, plan: plan, credits: credits, planned: planned, paid: paid, left: max(left, 0), asked: paid > 0}
	return algo.NewLease(d, of, algo.Handle{Key: c.key, N: planned + paid})
}

// Release ends both charges and refunds them if the work was canceled.
func (c *charge) Release(_ algo.Handle, o algo.Outcome) {
	c.credits.Release(o)
	c.plan.Release(o)
}

// Settle corrects both charges.
func (c *charge) Settle(_ algo.Handle, actual int64) {
	paid := c.fromCredits(actual)
	if paid > 0 && !c.asked {
		var err error
		c.credits, err = c.call.credits.Acquire(c.ctx, c.key, 0)
		if _, _, c.asked = c.credits.Charge(); !c.asked && (err != nil || !c.credits.Allowed) {
			paid = 0 // the plan decides alone
		}
	}
	c.credits.Settle(paid)
	c.plan.Settle(actual - paid)
}

// fromCredits returns how many of actual units credits pay. Refunds go to them first. Units above
// the charge take what the plan had left, then credits.
func (c *charge) fromCredits(actual int64) int64 {
	more := actual - c.planned - c.paid
	if more < 0 {
		return max(c.paid+more, 0)
	}
	return c.paid + max(more-c.left, 0)
}
