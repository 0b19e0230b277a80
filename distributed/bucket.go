package distributed

import (
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
)

// bucket is a limit that bucket.lua decides, with [decide.GCRA] in whole
// microseconds of the server's clock. Its state is the TAT.
type bucket struct {
	gcra *decide.GCRA
	decide.Params
	spec algo.Spec // as a token bucket
	clock
}

func newTokenBucket(s algo.Spec) (limit, error) {
	burst := s.Burst
	if !s.Given("burst") {
		burst = s.Rate.Count
	}
	g, err := decide.NewGCRA(microseconds(s.Rate), burst, s.MaxWait)
	return newBucket(s, g, err)
}

func newPacer(s algo.Spec) (limit, error) {
	queue, wait := int64(decide.Unbounded), time.Duration(decide.Unbounded)
	if s.Given("queue") {
		queue = s.MaxQueue
	}
	if s.Given("wait") {
		wait = s.MaxWait
	}
	if !s.Given("queue") && !s.Given("wait") {
		wait = s.Rate.Period
	}
	g, err := decide.NewPacer(microseconds(s.Rate), s.Slack, queue, wait)
	return newBucket(s, g, err)
}

func newBucket(s algo.Spec, g *decide.GCRA, err error) (limit, error) {
	if err != nil {
		return nil, err
	}
	p := g.Params()
	return &bucket{g, p, algo.Spec{
		Rate: s.Rate, Burst: g.Limit(), MaxWait: micros(p.MaxWait), MaxKeys: s.MaxKeys, DenyNew: s.DenyNew,
	}, s.Clock()}, nil
}

func microseconds(r algo.Rate) decide.Rate {
	return decide.Rate{Count: r.Count, Period: r.Period, Resolution: decide.Microseconds}
}

// micros converts a span of the server's clock; a negative one becomes 0.
func micros(us int64) time.Duration { return decide.Microseconds.Duration(max(us, 0)) }

func (b *bucket) script() *remote.Script { return bucketScript }

func (b *bucket) batches() {}

func (b *bucket) proves() {}

func (b *bucket) maxCost() int64 { return b.MaxCost }

func (b *bucket) acquireArgs(_ string, n int64) remote.Args {
	return remote.Args{opAcquire, b.Depth, b.MaxWait, possible(n, b.MaxCost) * b.Emission, 0, b.mark()}
}

func (b *bucket) mark() int64 { return markOf(2*b.Depth+b.MaxWait, b.Emission) }

// possible returns n, or 0 (a peek) for a cost that can never fit, which could exceed
// the largest integer of a script.
func possible(n, maxCost int64) int64 {
	if n > maxCost {
		return 0
	}
	return n
}

func (b *bucket) explain(a remote.Answer, n int64) (algo.Decision, algo.Handle) {
	tat, account := a.Reply[0], a.Reply[1]
	if a.Flag() == flagBanned {
		return whileBanned(b, n, tat-a.Now), algo.Handle{}
	}
	// tat may be implausible here, because other parameters on the key may allow more debt.
	next, answer, quota := b.gcra.Answer(tat, a.Now, n)
	return decision(answer, quota), handle(b.gcra.Charge(next, a.Now, n, answer.Delay), account)
}

// decision converts an answer in microseconds.
func decision(a decide.Answer, q decide.Quota) algo.Decision {
	d := algo.Decision{
		Allowed: a.Allowed, Limit: q.Limit, Remaining: q.Remaining,
		Delay: micros(a.Delay), NextAfter: micros(q.NextAfter), ResetAfter: micros(q.ResetAfter),
	}
	switch {
	case a.Never:
		d.Reason, d.RetryAfter = algo.Never, algo.Forever
	case !a.Allowed:
		d.Reason, d.RetryAfter = algo.Quota, micros(a.RetryAfter)
	}
	return d
}

// whileBanned denies n units of a key that is banned for left more microseconds. It denies 0 units
// too, because a lease without a charge could be settled.
func whileBanned(l limit, n, left int64) algo.Decision {
	d := algo.Decision{Reason: algo.Banned, Limit: l.describe().Quota, RetryAfter: micros(left), NextAfter: micros(left), ResetAfter: micros(left)}
	if n > l.maxCost() {
		d.Reason, d.RetryAfter = algo.Never, algo.Forever
	}
	return d
}

// handle converts c and the mark that the key's account had then.
func handle(c decide.Charge, mark int64) algo.Handle {
	return algo.Handle{N: c.N, At: c.At, State: [3]int64{c.A, c.B, mark}}
}

func chargeOf(h algo.Handle) decide.Charge {
	return decide.Charge{N: h.N, At: h.At, A: h.State[0], B: h.State[1]}
}

// refundArgs refunds n units as far as their charge still weighs; see [decide.GCRA.Refund].
func (b *bucket) refundArgs(h algo.Handle, n int64) remote.Args {
	c := chargeOf(h)
	return remote.Args{opRefund, b.gcra.MaxRefund(c, n), c.At + b.gcra.MaxRefund(c, c.N), c.A, h.State[2]}
}

// giveBackArgs refunds n units of any charge, at most the debt.
func (b *bucket) giveBackArgs(_ string, n int64) remote.Args {
	return remote.Args{opGiveBack, b.Depth, b.MaxWait, min(n, maxExact/b.Emission) * b.Emission, 0, b.mark()}
}

// forceArgs charges n units to h; see [decide.GCRA.ForceCharge]. A cost above the
// largest debt is charged as one tick more than that.
func (b *bucket) forceArgs(_ string, h algo.Handle, n int64) remote.Args {
	a := remote.Args{opForce, b.Depth, b.MaxWait, min(n, b.MaxDebt/b.Emission+1) * b.Emission, 0, b.mark()}
	if b.Emission < h.State[1] {
		a[4] = 1
	}
	return a
}

func (b *bucket) resetArgs(string) remote.Args { return remote.Args{opReset, b.Depth, b.MaxWait} }

func (b *bucket) describe() algo.Description {
	return algo.Description{Rate: b.spec.Rate, Quota: b.gcra.Limit(), Window: micros(b.Depth)}
}

func (b *bucket) local(of instances, was algo.Limiter) algo.Limiter {
	s := b.spec
	s.Rate, s.Burst = slower(s.Rate, of.count), of.part(s.Burst)
	return portionOf(s, b.spec.Rate, b.clock, of, was)
}
