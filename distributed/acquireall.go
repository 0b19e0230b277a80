package distributed

import (
	"context"

	"github.com/sluice-go/sluice/algo"
)

// Batches reports that two buckets of one store can be decided in one step. In
// a cluster their keys must share a slot, which they do when the callers' keys
// are the same: for example a limit per user and one per user and day. It
// implements [algo.Batcher], for [algo.AcquireAll].
func (l *Limiter) Batches(a, b algo.Request) bool {
	other, ok := b.Limiter.(*Limiter)
	if !ok || other.store != l.store || l.isClosed() || other.isClosed() {
		return false
	}
	_, first := l.load().(*bucket)
	_, second := other.load().(*bucket)
	return first && second && l.store.router.sameStep(l.redisKey(a.Key), other.redisKey(b.Key))
}

// AcquireBatch charges all of reqs or none, in one step. It implements
// [algo.Batcher]; callers use [algo.AcquireAll].
func (l *Limiter) AcquireBatch(ctx context.Context, reqs []algo.Request, leases []algo.Lease) error {
	return l.acquireAll(ctx, reqs, leases, opAcquireAll)
}

// PeekBatch answers as AcquireBatch would and charges nothing. It implements
// [algo.Batcher].
func (l *Limiter) PeekBatch(ctx context.Context, reqs []algo.Request, leases []algo.Lease) error {
	return l.acquireAll(ctx, reqs, leases, opPeekAll)
}

func (l *Limiter) acquireAll(ctx context.Context, reqs []algo.Request, leases []algo.Lease, op int64) error {
	if l.store.closed.Load() {
		return ErrClosed
	}
	l.store.registry.start()
	g := newGroup(reqs, op)
	r := g.request()
	if l.store.do(ctx, r) {
		defer r.free()
		if r.err == nil && g.answer(r, leases) {
			return nil
		}
		l.reportKeyFault(r)
	}
	fallbackAll(ctx, reqs, leases, op)
	return nil
}

// group is several requests to buckets of one store.
type group struct {
	parts []groupPart
	op    int64
}

type groupPart struct {
	algo.Request
	limiter *Limiter
	bucket  *bucket
	key     string // in Redis
	never   bool   // N and the earlier costs for the same key can never fit
}

// newGroup copies the parts of reqs that it needs, because the answer may come
// after the caller has gone on. A cost that can never fit makes it a peek.
func newGroup(reqs []algo.Request, op int64) *group {
	g := &group{make([]groupPart, len(reqs)), op}
	for i, r := range reqs {
		l := r.Limiter.(*Limiter)
		p := groupPart{Request: r, limiter: l, bucket: l.load().(*bucket), key: l.redisKey(r.Key)}
		room := p.bucket.MaxCost
		for _, before := range g.parts[:i] {
			if before.key == p.key {
				room -= min(before.N, room)
			}
		}
		if p.never = p.N > room; p.never {
			g.op = opPeekAll
		}
		g.parts[i] = p
	}
	return g
}

func (g *group) request() *request {
	r := newRequest(bucketScript, "", args{})
	n := len(g.parts)
	r.keys, r.args, r.reply = make([]string, n), make([]int64, 0, n*r.script.args), make([]int64, n*r.script.replies)
	for i, p := range g.parts {
		a := p.bucket.acquire("", p.N)
		a[0], a[4] = g.op, int64(n-i)
		r.keys[i] = p.key
		r.args = append(r.args, a[:r.script.args]...)
	}
	if g.op == opAcquireAll {
		r.late = g
	}
	return r
}

// answer writes the answer to leases. It reports false if a key holds another
// type.
func (g *group) answer(r *request, leases []algo.Lease) bool {
	decisions, handles, all := g.explain(r)
	for i := range g.parts {
		p := &g.parts[i]
		if r.answer(i).flag() == flagWrongType {
			return false
		}
		if r.answer(i).mixed() {
			p.limiter.reportMixed()
		}
		d := &decisions[i]
		d.Source = algo.SourceRemote
		p.limiter.fallback.follow(p.Key, d)
		switch {
		case !all || g.op != opAcquireAll:
			leases[i] = algo.NewLease(*d, nil, algo.Handle{})
		case p.N == 0:
			leases[i] = algo.NewLease(*d, p.limiter.lateReleaser(true), algo.Handle{Key: p.Key})
		default:
			leases[i] = algo.NewLease(*d, (*releaser)(p.limiter), handles[i])
		}
	}
	return true
}

// explain explains the parts in order, each after the charges of those before.
// If they are not charged, the decisions describe the buckets without a charge.
func (g *group) explain(r *request) (decisions []algo.Decision, handles []algo.Handle, all bool) {
	decisions, handles, all = make([]algo.Decision, len(g.parts)), make([]algo.Handle, len(g.parts)), true
	for i := range g.parts {
		p, d := &g.parts[i], &decisions[i]
		*d, handles[i] = p.bucket.explain(r.answer(i), p.N)
		handles[i].Key = p.Key
		if p.never {
			d.Allowed, d.Reason, d.RetryAfter = false, algo.Never, algo.Forever
		}
		all = all && d.Allowed && r.answer(i).flag() != flagWrongType
	}
	for i := 0; i < len(g.parts) && !all; i++ {
		was, d := decisions[i], &decisions[i]
		*d, _ = g.parts[i].bucket.explain(r.answer(i), 0)
		d.Allowed, d.Reason, d.Banned, d.Delay, d.RetryAfter = was.Allowed, was.Reason, was.Banned, was.Delay, was.RetryAfter
	}
	return decisions, handles, all
}

// refundLate undoes charges whose caller has stopped waiting.
func (g *group) refundLate(r *request) {
	_, handles, all := g.explain(r)
	if !all {
		return
	}
	for i := range g.parts {
		if p := &g.parts[i]; p.N > 0 {
			p.limiter.correct(p.key, bucketScript, p.bucket.refund(handles[i], p.N))
		}
	}
}

// fallbackAll decides all or nothing without Redis.
func fallbackAll(ctx context.Context, reqs []algo.Request, leases []algo.Lease, op int64) {
	all := true
	for i, r := range reqs {
		l := r.Limiter.(*Limiter)
		l.fallback.acquire(ctx, &leases[i], r.Key, r.N)
		all = all && leases[i].Allowed
	}
	if all && op == opAcquireAll {
		return
	}
	for i := len(leases) - 1; i >= 0; i-- {
		leases[i].Release(algo.Canceled)
	}
}
