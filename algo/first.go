package algo

import (
	"context"
	"fmt"
	"sync"

	"github.com/sluice-go/sluice/internal/decide"
)

// Prepaid spends from a plan, and units that do not fit there from prepaid credits;
// see [First].
type Prepaid struct {
	wrapping
	credits *Credits
	chooses bool // plan depends on the key
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
// their source, credits first; a settlement above the request becomes debt of the
// plan.
//
// Bound: in any window at most the bound of the plan, and the units that the key was
// topped up with.
//
// Remaining is the sum of both. RetryAfter is the plan's, for the units that credits lack,
// and exact if the plan's is; the Reason is [Never] if only a top-up helps. A key that is
// banned by the plan spends no credits; units paid by credits do not count towards a
// [Ban]. [Describe], [Spec.Apply] and [OccupiesSlot] go to the plan. A decision allocates
// nothing in the long run.
//
// A decision is one step for all that reaches plan through the same Prepaid, whatever is
// topped up meanwhile. A lock of the key is held while plan decides, so plan must not wait.
// For a plan on Redis use the First of package distributed.
//
// plan may spend other credits first, made before these. It panics if plan or credits is
// nil, and if plan spends the same or later credits: two such limits could wait for each
// other's locks for ever. Where [ByKey] or a [Chooser] chooses such a plan for a key, Acquire
// returns [ErrRequest]. First does not see credits behind limiters of other packages: the same
// holds for them.
func First(plan Limiter, credits *Credits) *Prepaid {
	mustLimiter(plan, "First")
	if credits == nil {
		panic("algo: First: the credits are nil")
	}
	made, chooses := latestCredits(plan, nil)
	if made >= credits.made {
		panic("algo: First: " + errCreditsOrder)
	}
	return &Prepaid{wrapping{plan}, credits, chooses}
}

const errCreditsOrder = "the plan spends the same credits, or some that were made later: make credits in the order in which they are spent"

// latestCredits returns which credits l spends, the latest of several, 0 for none; and whether
// a limiter is chosen by key: then chosen returns it, unless it is nil.
func latestCredits(l Limiter, chosen func(Limiter) Limiter) (made int64, chooses bool) {
	switch l := l.(type) {
	case *Credits:
		return l.made, false
	case *Prepaid:
		return l.credits.made, false // the order numbers of its plan are lower
	case *all:
		for _, one := range l.limiters {
			m, c := latestCredits(one, chosen)
			made, chooses = max(made, m), chooses || c
		}
	case byKey, Chooser:
		if chosen != nil {
			made, _ = latestCredits(chosen(l), chosen)
		}
		return made, true
	case interface{ wrapped() Limiter }:
		return latestCredits(l.wrapped(), chosen)
	}
	return made, chooses
}

// checkOrder reports whether the plan of a key would wait for the lock of the credits.
func (p *Prepaid) checkOrder(ctx context.Context, key string) error {
	if !p.chooses {
		return nil
	}
	chosen := func(l Limiter) Limiter {
		l, _ = resolve(ctx, l, key) // nil with an error, which Acquire returns
		return l
	}
	if made, _ := latestCredits(p.limiter, chosen); made >= p.credits.made {
		return fmt.Errorf("%w: First: %s", ErrRequest, errCreditsOrder)
	}
	return nil
}

// Acquire charges n units to the plan, and the units that do not fit there to
// credits; see [Limiter]. A negative n is [ErrCost]; errors of the plan are
// returned unchanged.
func (p *Prepaid) Acquire(ctx context.Context, key string, n int64) (lease Lease, err error) {
	if n < 0 {
		return lease, costError(n)
	}
	if err = p.checkOrder(ctx, key); err != nil {
		return lease, err
	}
	s := p.credits.lock(key)
	defer s.mu.Unlock()
	balance := max(s.balances[key], 0)
	paid, err := p.fromCredits(ctx, key, n, balance)
	if err != nil {
		return lease, err
	}
	if lease, err = p.limiter.Acquire(ctx, key, n-paid); err != nil {
		return Lease{}, err
	}
	lease.addCredits(balance)
	if lease.Allowed && paid > 0 {
		lease.Remaining -= paid
		p.credits.add(s, key, -paid)
		lease = p.leaseOf(lease, key, n-paid, paid)
	}
	return lease, nil
}

// fromCredits is how many of n units credits pay. It peeks at the plan, because a plan may
// count its denials; see [Ban].
func (p *Prepaid) fromCredits(ctx context.Context, key string, n, balance int64) (int64, error) {
	if balance == 0 {
		return 0, nil
	}
	d, err := peek(ctx, p.limiter, key, n)
	if err != nil || d.Allowed || d.Reason == Banned {
		return 0, err
	}
	return decide.FromCredits(n, d.Remaining, balance), nil
}

// addCredits adds a balance to the decision of a plan. An admission with a Limit of 0
// does not state the remaining units. Credits pay nothing for a banned key.
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

func (p *Prepaid) peekThrough(ctx context.Context, key string, n int64) (d Decision, err error) {
	if err = p.checkOrder(ctx, key); err != nil {
		return d, err
	}
	s := p.credits.lock(key)
	defer s.mu.Unlock()
	balance := max(s.balances[key], 0)
	paid, err := p.fromCredits(ctx, key, n, balance)
	if err == nil {
		d, err = peek(ctx, p.limiter, key, n-paid)
	}
	if err == nil {
		d.addCredits(balance)
	}
	return d, err
}

// prepaidLease is the side of a Prepaid of a lease for which credits paid. It is
// reused after the lease is released; the generation in the handle keeps copies of
// the released lease from its next use.
type prepaidLease struct {
	generation    int64
	credits       *Credits
	plan          Lease
	planned, paid int64 // at the admission
	key           string
}

var prepaidLeases = sync.Pool{New: func() any { return new(prepaidLease) }}

// leaseOf returns a lease of planned units that plan is charged with, and of paid units of
// credits.
func (p *Prepaid) leaseOf(plan Lease, key string, planned, paid int64) Lease {
	l := prepaidLeases.Get().(*prepaidLease)
	l.credits, l.plan, l.planned, l.paid, l.key = p.credits, plan, planned, paid, key
	return NewLease(plan.Decision, l, Handle{Key: key, N: planned + paid, At: l.generation})
}

// Release ends both charges, and gives both back if the work was canceled.
func (l *prepaidLease) Release(h Handle, o Outcome) {
	if h.At != l.generation {
		return
	}
	s := l.credits.lock(l.key)
	defer s.mu.Unlock()
	if o.Result() == Canceled {
		l.credits.add(s, l.key, decide.SettledCredits(l.planned, l.paid, h.N))
	}
	l.plan.Release(o)
	l.generation++
	l.plan, l.key = Lease{}, ""
	prepaidLeases.Put(l)
}

// Settle corrects both charges in one step.
func (l *prepaidLease) Settle(h Handle, actual int64) {
	if h.At != l.generation {
		return
	}
	s := l.credits.lock(l.key)
	defer s.mu.Unlock()
	paid := decide.SettledCredits(l.planned, l.paid, actual)
	l.credits.add(s, l.key, decide.SettledCredits(l.planned, l.paid, h.N)-paid)
	l.plan.Settle(actual - paid)
}
