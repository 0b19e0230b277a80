package prepaid

import (
	"context"
	"math"

	"github.com/sluice-go/sluice/algo"
)

// First charges plan, a limit over time, and credits for the units that do not fit there, under the same
// key. Either may be on Redis:
//
//	plan := algo.Must(algo.NewFixedWindow(algo.Per(1_000_000, algo.Month), algo.Zone("UTC")))
//	credits := prepaid.NewCredits()
//	limit := prepaid.First(plan, credits)
//
// A request may be split: the plan pays with its remaining units, credits pay the rest, or as much as
// they can if the plan is a marker (package marker) with units in several buckets. If both together do
// not suffice, nothing is charged. Refunded units return to their source, credits first. A settlement
// above the request takes what the plan has left, then credits, below zero if necessary, which the next
// top-up pays. For a key whose local balance is 0 the plan decides alone.
//
// Bound: in any window at most the bound of the plan, the units that the key was topped up with, and the
// balance below zero.
//
// Limit and Remaining are the sums of both; if the credits are remote, those of the plan while it pays
// alone. RetryAfter is the plan's, for the units that credits lack, and exact if the plan's is; the
// Reason is [algo.Never] if only a top-up helps. Credits pay only for a plan that denies with Quota or
// Never, not for bans or a lack of capacity. While they are unavailable, the plan decides alone. Put a
// ban (package guard) around First: inside, it counts no denial. [algo.About] describes the plan.
//
// Nothing is locked while plan decides. Both are charged or neither: a charge that is about to be
// refunded may deny another call. On Redis a decision takes one round trip while the plan pays, one more
// for credits, and one more for a split; a settlement above the request may take two. It panics if plan
// or credits is nil.
func First(plan, credits algo.Limiter) algo.Limiter {
	if plan == nil || credits == nil {
		panic("prepaid: First: the plan or the credits are nil")
	}
	return &first{plan, credits, algo.About(credits).Remote}
}

type first struct {
	plan, credits algo.Limiter
	remote        bool // the credits
}

// Unwrap returns the plan and the credits.
func (f *first) Unwrap() []algo.Limiter { return []algo.Limiter{f.plan, f.credits} }

// About describes the plan.
func (f *first) About() algo.Description {
	d, c := algo.About(f.plan), algo.About(f.credits)
	d.Remote, d.NeedsRelease = d.Remote || c.Remote, d.NeedsRelease || c.NeedsRelease
	return d
}

// call is one request or peek, with First's choices for it.
type call struct {
	ctx           context.Context
	plan, credits algo.Limiter
	key           string
}

func (f *first) begin(ctx context.Context, key string) (c call, err error) {
	c = call{ctx: algo.Tentative(ctx), key: key}
	if c.plan, err = algo.Resolve(ctx, f.plan, key); err == nil {
		c.credits, err = algo.Resolve(ctx, f.credits, key)
	}
	return c, err
}

// attempts is how often a request is split again because others have spent meanwhile.
const attempts = 5

// Acquire charges n units to the plan, and the units that do not fit there to the credits.
func (f *first) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	c, err := f.begin(ctx, key)
	if err != nil {
		return algo.Lease{}, err
	}
	for again := attempts; ; again-- {
		lease, err := c.plan.Acquire(c.ctx, key, n)
		switch {
		case err != nil || !payable(&lease.Decision):
			return lease, err
		case lease.Allowed:
			return f.planned(c, n, lease), nil
		}
		if split, final, err := c.split(n, lease); final || again == 1 {
			return split, err
		}
	}
}

// planned returns the lease of n units that the plan has paid. A peek shows the credits too; other
// answers do if that takes no round trip.
func (f *first) planned(c call, n int64, lease algo.Lease) algo.Lease {
	d := lease.Decision
	if n == 0 || !f.remote {
		if c.empty() {
			return lease
		}
		add(&d, c.balance())
	}
	left := lease.Remaining
	if !lease.InForce() {
		left = math.MaxInt64 // the plan pays everything
	}
	return newCharge(c, d, lease, algo.Lease{}, n, 0, left)
}

// empty reports whether the key has neither credits nor debt; for remote credits it is false.
func (c *call) empty() bool {
	local, ok := c.credits.(*Credits)
	return ok && local.Balance(c.key) == 0
}

// balance returns the credits' balance; 0 if they do not answer.
func (c *call) balance() int64 {
	d, err := algo.Peek(c.ctx, c.credits, c.key, 0)
	if err != nil {
		return 0
	}
	return max(d.Remaining, 0)
}

// payable reports whether credits may pay after a plan's answer.
func payable(d *algo.Decision) bool { return d.Reason != algo.Banned && d.Reason != algo.Overload }

// add adds a balance to the decision of a plan.
func add(d *algo.Decision, balance int64) {
	if d.InForce() && payable(d) {
		d.Limit, d.Remaining = sum(d.Limit, balance), sum(d.Remaining, balance)
	}
}

// split charges n units, which the plan has denied, to credits as far as the plan lacks them. It is
// final unless others spent meanwhile.
func (c *call) split(n int64, denied algo.Lease) (lease algo.Lease, final bool, err error) {
	lacks := lacks(n, &denied.Decision)
	paid, units, err := c.pay(lacks)
	if err != nil || units == 0 {
		return denied, true, nil
	}
	defer func() {
		if !lease.Allowed { // or after a panic
			paid.Release(algo.Canceled)
		}
	}()
	d, balance := denied.Decision, sum(units, max(paid.Remaining, 0))
	var planned algo.Lease
	if units < n {
		if planned, err = c.plan.Acquire(c.ctx, c.key, n-units); err != nil {
			return algo.Lease{}, true, err
		}
		d = planned.Decision
	}
	add(&d, balance)
	if units < n && !planned.Allowed {
		if units == lacks && inPieces(n-units, &planned.Decision) {
			paid.Release(algo.Canceled)
			denied.Remaining = 0
			return c.split(n, denied)
		}
		return algo.NewLease(d, nil, algo.Handle{}), units < lacks, nil
	}
	d.Allowed, d.Reason, d.Cause, d.RetryAfter = true, algo.Admitted, 0, 0
	d.Source, d.Delay, d.Remaining = max(d.Source, paid.Source), max(d.Delay, paid.Delay), d.Remaining-units
	return newCharge(*c, d, planned, paid, n-units, units, 0), true, nil
}

// inPieces reports whether a plan denies n units although it has them: a marker keeps them in
// several buckets, one of which pays a request.
func inPieces(n int64, denied *algo.Decision) bool { return !denied.Allowed && denied.Remaining >= n }

// lacks returns how many of n denied units credits must pay: all if the plan has them in pieces.
func lacks(n int64, denied *algo.Decision) int64 {
	if inPieces(n, denied) {
		return n
	}
	return n - max(denied.Remaining, 0)
}

// pay charges credits all that they have, at most n units.
func (c *call) pay(n int64) (lease algo.Lease, paid int64, err error) {
	for range attempts {
		if n <= 0 {
			break
		}
		if lease, err = c.credits.Acquire(c.ctx, c.key, n); err != nil || lease.Allowed {
			return lease, n, err
		}
		n = min(n-1, lease.Remaining)
	}
	return algo.Lease{}, 0, nil
}

// Peek answers as Acquire does, and charges nothing.
func (f *first) Peek(ctx context.Context, key string, n int64) (algo.Decision, error) {
	c, err := f.begin(ctx, key)
	if err != nil {
		return algo.Decision{}, err
	}
	d, err := algo.Peek(ctx, c.plan, key, n)
	if err != nil || !payable(&d) {
		return d, err
	}
	balance := c.balance()
	if paid := min(lacks(n, &d), balance); !d.Allowed && paid > 0 {
		d, err = algo.Peek(ctx, c.plan, key, n-paid)
		if all := min(n, balance); inPieces(n-paid, &d) && all > paid {
			d, err = algo.Peek(ctx, c.plan, key, n-all)
		}
	}
	add(&d, balance)
	return d, err
}

func sum(a, b int64) int64 {
	if s := a + b; s >= a {
		return s
	}
	return 1<<63 - 1
}
