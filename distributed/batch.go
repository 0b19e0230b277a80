package distributed

import (
	"context"

	"github.com/sluice-go/sluice/algo"
)

// Batches reports that two buckets of one store can be decided in one step. In
// a cluster their keys must share a slot, which they do when the callers' keys
// are the same: a limit per user and one per user and day, say. It implements
// [algo.Batcher], for [algo.AcquireAll].
func (l *Limiter) Batches(a, b algo.Request) bool {
	other, ok := b.Limiter.(*Limiter)
	if !ok || other.store != l.store {
		return false
	}
	_, mine := l.load().(*gcra)
	_, others := other.load().(*gcra)
	return mine && others && l.store.router.together(l.redisKey(a.Key), other.redisKey(b.Key))
}

// AcquireBatch charges all of reqs or none, in one step. It implements
// [algo.Batcher]; callers use [algo.AcquireAll].
func (l *Limiter) AcquireBatch(ctx context.Context, reqs []algo.Request, leases []algo.Lease) error {
	return l.batch(ctx, reqs, leases, opAcquire)
}

// PeekBatch answers as AcquireBatch would and charges nothing. It implements
// [algo.Batcher].
func (l *Limiter) PeekBatch(ctx context.Context, reqs []algo.Request, leases []algo.Lease) error {
	return l.batch(ctx, reqs, leases, opAsk)
}

func (l *Limiter) batch(ctx context.Context, reqs []algo.Request, leases []algo.Lease, op int64) error {
	if l.store.closed.Load() {
		return ErrClosed
	}
	l.store.registry.start()
	b := newBatch(reqs, op)
	e := b.entry()
	if l.store.call(ctx, e) {
		defer e.free()
		if e.err == nil && b.read(e, leases) {
			return nil
		}
		l.keyFault(e)
	}
	fallbackAll(ctx, reqs, leases, op)
	return nil
}

// batch is several requests to buckets of one store.
type batch struct {
	parts []batchPart
	op    int64
}

type batchPart struct {
	algo.Request
	limiter *Limiter
	limit   limit
	key     string // in Redis
	sum     int64  // N, and that of earlier requests for the same bucket
}

// newBatch copies what it needs of reqs, which are the caller's: the answer may
// come later than the caller waits. A cost that can never fit makes it a
// question only.
func newBatch(reqs []algo.Request, op int64) *batch {
	b := &batch{make([]batchPart, len(reqs)), op}
	for i, r := range reqs {
		l := r.Limiter.(*Limiter)
		p := batchPart{Request: r, limiter: l, limit: l.load(), key: l.redisKey(r.Key), sum: r.N}
		for _, before := range b.parts[:i] {
			if before.key == p.key {
				p.sum = min(p.sum, 1<<62) + min(before.N, 1<<62/int64(len(reqs)))
			}
		}
		if p.sum > p.limit.largest() {
			b.op = opAsk
		}
		b.parts[i] = p
	}
	return b
}

func (b *batch) entry() *entry {
	e := ask(togetherScript, "", args{})
	n := len(b.parts)
	e.keys, e.args, e.reply = make([]string, n), make([]int64, 0, n*e.script.args), make([]int64, n*e.script.replies)
	for i, p := range b.parts {
		a := p.limit.acquire(p.N)
		a[0] = b.op
		e.keys[i] = p.key
		e.args = append(e.args, a[:e.script.args]...)
	}
	if b.op == opAcquire {
		e.late = b.takeBack
	}
	return e
}

// read writes the answer to leases; false if one of the keys is of another
// type.
func (b *batch) read(e *entry, leases []algo.Lease) bool {
	all := true
	for i := range b.parts {
		if e.part(i)[2] == flagType {
			return false
		}
		d := b.explain(e, i)
		d.Source = algo.SourceRemote
		all = all && d.Allowed
		leases[i] = algo.NewLease(d, nil, algo.Handle{})
	}
	for i := range b.parts {
		p := &b.parts[i]
		if p.limiter.store.fallback == Local {
			p.limiter.fallback.warm(p.Key, &leases[i].Decision)
		}
		if all && b.op == opAcquire && p.N > 0 {
			leases[i] = algo.NewLease(leases[i].Decision, (*releaser)(p.limiter), b.handle(e, i))
		}
	}
	return true
}

func (b *batch) explain(e *entry, i int) (d algo.Decision) {
	p := &b.parts[i]
	n := p.sum
	if p.N == 0 {
		n = 0
	}
	p.limit.explain(&d, e.now, e.part(i), n)
	return d
}

func (b *batch) handle(e *entry, i int) algo.Handle {
	p := &b.parts[i]
	h := algo.Handle{Key: p.Key, N: p.N}
	p.limit.remember(&h, &entry{now: e.now, reply: e.part(i)})
	return h
}

// takeBack undoes charges whose caller had given up when the answer came.
func (b *batch) takeBack(e *entry) {
	for i := range b.parts {
		if d := b.explain(e, i); !d.Allowed || e.part(i)[2] == flagType {
			return
		}
	}
	for i := range b.parts {
		if p := &b.parts[i]; p.N > 0 {
			h := b.handle(e, i)
			p.limiter.credit(p.key, p.limit.script(), p.limit.refund(h, h.N))
		}
	}
}

// part is the reply about the i-th key.
func (e *entry) part(i int) []int64 {
	n := e.script.replies
	return e.reply[i*n:][:n]
}

// fallbackAll decides all or nothing without Redis.
func fallbackAll(ctx context.Context, reqs []algo.Request, leases []algo.Lease, op int64) {
	all := true
	for i, r := range reqs {
		l := r.Limiter.(*Limiter)
		l.fallback.acquire(ctx, &leases[i], r.Key, r.N)
		all = all && leases[i].Allowed
	}
	if all && op == opAcquire {
		return
	}
	for i := len(leases) - 1; i >= 0; i-- {
		leases[i].Release(algo.Canceled)
	}
}
