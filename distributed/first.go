package distributed

import (
	"context"
	"errors"
	"math"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/remote"
)

// Prepaid spends from a plan in Redis, and units that do not fit there from prepaid
// credits; see [First].
type Prepaid struct {
	plan    *Limiter
	credits *Credits
}

// First spends from plan, a bucket or a fixed window, and units that do not fit there from
// credits of the same store, in one step and one round trip; see [algo.First] for the split,
// refunds and RetryAfter.
//
// Bound: the plan's bound, the units of the key's top-ups, and what its balance is below zero. While Redis is away the
// fallback of the plan decides, and no credits are spent. Corrections of leases wait for its
// return; see [Stats].
//
// Decisions are exact also with [WithBlocks]. In a cluster the empty key is not supported,
// because the keys of plan and credits then lie in two slots. The error is for a plan with
// another algorithm, or for different stores.
func First(plan *Limiter, credits *Credits) (*Prepaid, error) {
	switch {
	case plan == nil || credits == nil:
		return nil, errors.New("distributed: First: the plan or the credits are nil")
	case plan.store != credits.store:
		return nil, plan.errorf("First: the credits %q are of another store", credits.name)
	}
	switch plan.load().(type) {
	case *bucket, *fixedWindow, *calendarWindow:
		return &Prepaid{plan, credits}, nil
	}
	return nil, plan.errorf("First: want a bucket or a fixed window as the plan")
}

// About is about the plan.
func (p *Prepaid) About() algo.Description { return p.plan.About() }

// Acquire charges n units to the plan, and the units that do not fit there to
// credits; see [algo.Limiter] and [Limiter.Acquire].
func (p *Prepaid) Acquire(ctx context.Context, key string, n int64) (lease algo.Lease, err error) {
	l := p.plan
	if n < 0 {
		return lease, l.errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	}
	if l.isClosed() {
		return lease, ErrClosed
	}
	l.store.registry.start()
	c := prepaidCall{p, key, n, l.load()}
	r := c.request()
	if l.store.remote.Do(ctx, r) {
		defer r.Free()
		if r.Err == nil && r.Answer(0).Flag() != flagWrongType && r.Answer(1).Flag() != flagWrongType {
			c.answer(r, &lease)
			return lease, nil
		}
		l.reportKeyFault(r)
	}
	l.fallback.acquire(ctx, &lease, key, n)
	return lease, nil
}

// prepaidCall is one Acquire on its way to Redis.
type prepaidCall struct {
	of    *Prepaid
	key   string
	n     int64
	limit limit
}

// request asks about the plan and the credits together.
func (c prepaidCall) request() *remote.Request {
	plan := c.limit.acquireArgs(c.key, 0)
	plan[0], plan[3] = opFirst, possible(c.n, decide.MaxBalance)
	if b, ok := c.limit.(*bucket); ok {
		plan[4] = b.Emission
	}
	s := c.limit.script()
	r := remote.NewRequest(s, "", remote.Args{})
	r.Keys = []string{c.of.plan.redisKey(c.key), c.of.credits.redisKey(c.key)}
	r.Args = append(append([]int64(nil), plan[:s.Args]...), make([]int64, s.Args)...)
	r.Args[s.Args] = opCredits
	r.Reply = make([]int64, 2*s.Replies)
	if c.n > 0 {
		r.Undo = c
	}
	return r
}

// explain returns the decision of the plan on the units that credits do not pay, and how
// many credits would pay, of which balance.
func (c prepaidCall) explain(r *remote.Request) (d algo.Decision, h algo.Handle, balance, paid int64) {
	balance, paid = max(r.Answer(1).Reply[0], 0), r.Answer(1).Reply[1]
	d, h = c.limit.explain(r.Answer(0), c.n-paid)
	return d, h, balance, paid
}

func (c prepaidCall) answer(r *remote.Request, lease *algo.Lease) {
	d, h, balance, paid := c.explain(r)
	l := c.of.plan
	if r.Answer(0).Mixed() {
		l.reportMixed()
	}
	d.Source = algo.SourceRemote
	l.fallback.follow(c.key, &d)
	split := decide.NewSplit(c.n-paid, paid, balance-paid, d.Remaining, d.Limit)
	alone := r.Answer(1).Reply[0] == 0 || !d.InForce() // all is the plan's
	d.Limit, d.Remaining = d.Limit+balance, d.Remaining+balance
	h.Key = c.key
	if d.Allowed && c.n > 0 {
		l.store.denied.outdate(r.Keys[0])
	}
	switch {
	case !d.Allowed:
		*lease = algo.NewLease(d, nil, algo.Handle{})
	case c.n == 0:
		if alone {
			split.Balance, split.Owes = 0, math.MaxInt64
		}
		*lease = algo.NewLease(d, &prepaidLook{of: c.of, split: split, plan: algo.NewLease(d, (*releaser)(l), h)}, algo.Handle{Key: c.key})
	case alone:
		*lease = algo.NewLease(d, (*releaser)(l), h)
	default:
		d.Remaining -= paid
		*lease = algo.NewLease(d, &prepaidLease{Split: split, of: c.of, charge: h}, algo.Handle{Key: c.key, N: c.n})
	}
}

// UndoCharge undoes a charge whose caller has stopped waiting.
func (c prepaidCall) UndoCharge(r *remote.Request) {
	if r.Err != nil || r.Answer(0).Flag() == flagWrongType || r.Answer(1).Flag() == flagWrongType {
		return
	}
	d, h, _, paid := c.explain(r)
	if !d.Allowed {
		return
	}
	c.of.credits.add(c.key, paid)
	if n := c.n - paid; n > 0 {
		c.of.plan.correct(r.Keys[0], c.limit, c.limit.refundArgs(h, n))
	}
}

// prepaidLease is the side of a Prepaid of a lease of a key that has credits.
type prepaidLease struct {
	decide.Split
	of     *Prepaid
	charge algo.Handle // of the plan
	owed   int64       // to a plan that has charged nothing
}

// Release gives back a canceled charge.
func (p *prepaidLease) Release(h algo.Handle, o algo.Outcome) {
	if o.Result() == algo.Canceled {
		p.Settle(h, 0)
	}
}

// Settle corrects the charges of the plan and of the credits.
func (p *prepaidLease) Settle(h algo.Handle, actual int64) {
	was, is := p.Credits(h.N), p.Credits(actual)
	p.of.credits.add(h.Key, was-is)
	p.charge.Key, p.charge.N = h.Key, h.N-was
	switch planned := actual - is; {
	case p.Planned > 0 && planned != p.charge.N:
		(*releaser)(p.of.plan).Settle(p.charge, planned)
	case p.Planned == 0 && planned > p.owed: // the plan has charged nothing, and gives nothing back
		p.charge.N, p.owed = p.owed, planned
		(*releaser)(p.of.plan).Settle(p.charge, planned)
	}
}

// prepaidLook is the side of a Prepaid of a lease of cost 0. What it is settled to is charged
// as a request if that fits.
type prepaidLook struct {
	of      *Prepaid
	split   decide.Split
	plan    algo.Lease
	charged algo.Lease
	asked   bool
	paid    int64 // by credits, of units that did not fit
}

// Release ends the charges.
func (p *prepaidLook) Release(_ algo.Handle, o algo.Outcome) {
	p.charged.Release(o)
	p.plan.Release(o)
}

// Settle corrects the charge.
func (p *prepaidLook) Settle(h algo.Handle, actual int64) {
	if !p.asked {
		p.asked = true
		lease, err := p.of.Acquire(context.Background(), h.Key, actual)
		if err == nil && lease.Allowed && lease.Delay == 0 {
			p.charged = lease
			return
		}
		lease.Release(algo.Canceled)
	}
	if p.charged.Allowed {
		p.charged.Settle(actual)
		return
	}
	was := p.paid
	p.paid = p.split.Credits(actual)
	p.of.credits.add(h.Key, was-p.paid)
	p.plan.Settle(actual - p.paid)
}
