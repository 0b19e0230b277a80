package algo

import (
	"context"
	"math"

	"github.com/sluice-go/sluice/internal/decide"
)

// Prepaid spends from a plan, and units that do not fit there from prepaid credits;
// see [First].
type Prepaid struct {
	wrapping
	credits *Credits
}

// First spends from plan, a limit over time, and the units that do not fit there from
// credits, under the same key:
//
//	plan := algo.Must(algo.NewFixedWindow(algo.Per(1_000_000, algo.Month), algo.Zone("UTC")))
//	credits := algo.Must(algo.NewCredits())
//	limit := algo.First(plan, credits)
//
// A request may be split: the plan pays with its remaining units, credits pay the
// rest. If both together do not suffice, nothing is charged. Refunded units return to
// their source, credits first. A settlement above the request is charged to the credits, and
// what they cannot pay to the plan, as debt of at most its Limit; the rest lowers the balance
// below zero, which the next top-up pays.
//
// Bound: in any window at most the bound of the plan, the units that the key was
// topped up with, and what its balance is below zero. A key without credits is charged as by the
// plan alone.
//
// Remaining is the sum of both. RetryAfter is the plan's, for the units that credits lack,
// and exact if the plan's is; the Reason is [Never] if only a top-up helps. A key that is
// banned by the plan spends no credits. A ban (package guard) goes around First: inside, it counts no
// denial. [About] and [Spec.Apply] go to the plan. A decision that credits pay
// a part of allocates a few times.
//
// Nothing is locked while plan decides, so plan may read the credits, and spend others first.
// Both are charged or neither, as in [AcquireAll]: a call may be denied because of a charge
// that is about to be given back. For a plan on Redis use the First of package distributed.
// It panics if plan or credits is nil.
func First(plan Limiter, credits *Credits) *Prepaid {
	mustLimiter(plan, "First")
	if credits == nil {
		panic("algo: First: the credits are nil")
	}
	return &Prepaid{wrapping{plan}, credits}
}

// Acquire charges n units to the plan, and the units that do not fit there to
// credits; see [Limiter]. A negative n is [ErrCost]; errors of the plan are
// returned unchanged.
func (p *Prepaid) Acquire(ctx context.Context, key string, n int64) (Lease, error) {
	if n < 0 {
		return Lease{}, costError(n)
	}
	plan, err := Resolve(ctx, p.limiter, key)
	if err != nil {
		return Lease{}, err
	}
	ctx = Tentative(ctx)
	for again := attemptsOfFirst; ; again-- {
		lease, err := plan.Acquire(ctx, key, n)
		if err != nil {
			return Lease{}, err
		}
		has := p.credits.Balance(key)
		balance := max(has, 0)
		split := decide.NewSplit(n, 0, balance, lease.Remaining, lease.Limit)
		if has == 0 || !lease.InForce() {
			split = decide.Split{Planned: n, Owes: math.MaxInt64} // all is the plan's
		}
		if lease.Allowed || lease.Reason == Banned || balance == 0 {
			lease.addCredits(balance)
			if lease.Allowed && (n == 0 || has != 0) {
				return p.alone(ctx, plan, lease, key, split)
			}
			return lease, nil
		}
		if split, final, err := p.split(ctx, plan, key, n, lease.Decision, balance); err != nil || final || again == 0 {
			return split, err
		}
	}
}

// alone is the lease of units that plan has paid, for a key that has credits, or may have later.
func (p *Prepaid) alone(ctx context.Context, plan Limiter, paid Lease, key string, split decide.Split) (Lease, error) {
	none, err := p.credits.Acquire(ctx, key, 0)
	both := &prepaidLease{Split: split, plan: paid, credits: none}
	if split.Planned == 0 {
		return NewLease(paid.Decision, &prepaidLook{p: &Prepaid{wrapping{plan}, p.credits}, both: both}, Handle{Key: key}), err
	}
	return NewLease(paid.Decision, both, Handle{Key: key, N: split.Planned}), err
}

// split charges n units to the plan, which has denied them, and to a balance. It is final unless
// others have spent meanwhile.
func (p *Prepaid) split(ctx context.Context, plan Limiter, key string, n int64, denied Decision, balance int64) (lease Lease, final bool, err error) {
	paid := decide.FromCredits(n, denied.Remaining, balance)
	both, err := AcquireAll(ctx, Request{p.credits, key, paid}, Request{plan, key, n - paid})
	if err != nil {
		return Lease{}, true, err
	}
	d := both.Part(1).Decision
	after := decide.NewSplit(n-paid, paid, balance-paid, d.Remaining, d.Limit)
	d.addCredits(balance)
	if both.Allowed {
		d.Remaining -= paid
		return NewLease(d, newSplitLease(both, after), Handle{Key: key, N: n}), true, nil
	}
	final = !d.Allowed && paid == balance
	if d.Allowed || d.Reason == Admitted {
		d = denied
		d.addCredits(balance)
	}
	return Lease{Decision: d}, final, nil
}

// attemptsOfFirst is how often a request is split again because others have spent meanwhile.
const attemptsOfFirst = 4

// addCredits adds a balance to the decision of a plan. Credits pay nothing for a banned key.
func (d *Decision) addCredits(balance int64) {
	if d.InForce() && d.Reason != Banned {
		d.Limit = addSaturated(d.Limit, balance)
		d.Remaining = addSaturated(d.Remaining, balance)
	}
}

// Allow is the short form of Acquire for callers that need only Allowed. It does not
// admit with a Delay. A negative n is denied.
func (p *Prepaid) Allow(key string, n int64) bool {
	lease, err := p.Acquire(context.Background(), key, n)
	if lease.Delay > 0 {
		lease.Release(Canceled)
		return false
	}
	return err == nil && lease.Allowed
}

// Peek answers as Acquire does, and charges nothing.
func (p *Prepaid) Peek(ctx context.Context, key string, n int64) (Decision, error) {
	plan, err := Resolve(ctx, p.limiter, key)
	if err != nil {
		return Decision{}, err
	}
	d, err := Peek(ctx, plan, key, n)
	balance := max(p.credits.Balance(key), 0)
	if err == nil && !d.Allowed && d.Reason != Banned {
		if paid := decide.FromCredits(n, d.Remaining, balance); paid > 0 {
			d, err = Peek(ctx, plan, key, n-paid)
		}
	}
	d.addCredits(balance)
	return d, err
}

// prepaidLease is the side of a Prepaid of a lease for which both are charged, or may be.
type prepaidLease struct {
	decide.Split
	plan, credits Lease
	both          Lease // of which these are parts
}

func newSplitLease(both Lease, s decide.Split) *prepaidLease {
	return &prepaidLease{s, *both.Part(1), *both.Part(0), both}
}

// Release ends both charges, and gives both back if the work was canceled.
func (l *prepaidLease) Release(_ Handle, o Outcome) {
	l.credits.Release(o)
	l.plan.Release(o)
	l.both.Release(o)
}

// Settle corrects both charges.
func (l *prepaidLease) Settle(_ Handle, actual int64) {
	paid := l.Credits(actual)
	l.credits.Settle(paid)
	l.plan.Settle(actual - paid)
}

// prepaidLook is the side of a Prepaid of a lease of cost 0. What it is settled to is charged
// as a request if the key has credits and that fits.
type prepaidLook struct {
	p       *Prepaid // with the plan of the look
	both    *prepaidLease
	charged Lease
}

// Release ends the charges.
func (l *prepaidLook) Release(h Handle, o Outcome) {
	l.charged.Release(o)
	l.both.Release(h, o)
}

// Settle corrects the charge.
func (l *prepaidLook) Settle(h Handle, actual int64) {
	if h.N == 0 && l.charged.releaser == nil && l.p.credits.Balance(h.Key) > 0 {
		if lease, err := l.p.Acquire(tentative, h.Key, actual); err == nil && lease.Allowed && lease.Delay == 0 {
			l.charged = lease
			return
		} else if err == nil {
			lease.Release(Canceled)
		}
	}
	if l.charged.releaser != nil {
		l.charged.Settle(actual)
	} else {
		l.both.Settle(h, actual)
	}
}
