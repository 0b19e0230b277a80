package distributed

import (
	"context"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// Batches reports whether a and b, two buckets or two fixed windows of one store, can be decided
// in one step. Their keys must be equal in a cluster, behind a proxy that splits scripts by key, and
// until the store knows that there is neither. It implements [algo.Batcher], for [algo.AcquireAll].
func (l *Limiter) Batches(a, b algo.Request) bool {
	other, ok := b.Limiter.(*Limiter)
	if !ok || other.store != l.store || l.isClosed() || other.isClosed() {
		return false
	}
	if lim, ok := l.load().(batcher); !ok || lim.script() != other.load().script() {
		return false
	}
	return l.store.remote.SameStep(l.redisKey(a.Key), other.redisKey(b.Key))
}

// AcquireBatch charges all of reqs or none, in one step. It implements
// [algo.Batcher]; callers use [algo.AcquireAll].
func (l *Limiter) AcquireBatch(ctx context.Context, reqs []algo.Request, leases []algo.Lease) error {
	return l.acquireAll(ctx, reqs, leases, opAcquireAll)
}

// PeekBatch returns the answers of AcquireBatch and charges nothing. It implements
// [algo.Batcher].
func (l *Limiter) PeekBatch(ctx context.Context, reqs []algo.Request, leases []algo.Lease) error {
	return l.acquireAll(ctx, reqs, leases, opPeekAll)
}

func (l *Limiter) acquireAll(ctx context.Context, reqs []algo.Request, leases []algo.Lease, op int64) error {
	if l.store.remote.Closed() {
		return ErrClosed
	}
	l.store.registry.start()
	g := newGroup(l.store, reqs, op)
	if !g.here(leases) && !g.remote(ctx, leases) {
		fallbackAll(ctx, reqs, leases, op == opPeekAll)
	}
	return nil
}

// group holds several requests to limits of one store and one script.
type group struct {
	store *Store
	parts []groupPart
	op    int64
	twice bool // a key occurs more than once
}

type groupPart struct {
	algo.Request
	limiter *Limiter
	limit   limit
	key     string // in Redis
	never   bool   // N and the earlier costs for the same key can never fit
	block   *block // of the key, nil if it stays exact
	extra   int64  // units that are charged for the block

	corrections uint64 // of the key, before the request
}

// units returns how many units are charged.
func (p *groupPart) units() int64 { return p.N + p.extra }

// newGroup copies what it needs of reqs, because the answer may come after the
// caller has left. A cost that can never fit turns it into a peek.
func newGroup(s *Store, reqs []algo.Request, op int64) *group {
	g := &group{store: s, parts: make([]groupPart, len(reqs)), op: op}
	for i, r := range reqs {
		l := r.Limiter.(*Limiter)
		p := groupPart{Request: r, limiter: l, limit: l.load(), key: l.redisKey(r.Key)}
		room := p.limit.maxCost()
		for _, before := range g.parts[:i] {
			if before.key == p.key {
				room -= min(before.N, room)
				g.twice = true
			}
		}
		if p.never = p.N > room; p.never {
			g.op = opPeekAll
		}
		g.parts[i] = p
	}
	return g
}

// here decides in this process if it can spend each part from its block or prove its denial.
func (g *group) here(leases []algo.Lease) bool {
	if g.twice {
		return false
	}
	all := g.op == opAcquireAll
	for i := range g.parts {
		p := &g.parts[i]
		if p.limiter.blocks.spend(&leases[i], p.Key, p.N) {
			continue
		}
		if !g.store.denied.denies(&leases[i].Decision, p.limit, p.key, p.N) {
			g.giveBack(leases[:i])
			return false
		}
		all = false
	}
	if !all {
		g.giveBack(leases)
	}
	return true
}

// giveBack refunds the units spent from blocks and keeps the decisions, as results of
// peeks.
func (g *group) giveBack(leases []algo.Lease) {
	for i := range leases {
		if leases[i].Allowed {
			undo(&leases[i], g.parts[i].N)
		}
	}
}

// remote lets Redis decide, and perhaps charge blocks too. It reports false if there is no
// answer.
func (g *group) remote(ctx context.Context, leases []algo.Lease) bool {
	for i := range g.parts {
		g.parts[i].corrections = g.store.denied.corrections(g.parts[i].key)
	}
	blocks := g.want()
	defer g.store.fetches.Add(-blocks)
	all, answered := g.ask(ctx, leases)
	if blocks == 0 || all || !answered {
		return answered
	}
	for i := range g.parts { // the blocks did not fit; the costs alone may
		g.parts[i].extra = 0
	}
	_, answered = g.ask(ctx, leases)
	return answered
}

// want finds the blocks of the parts and returns how many need filling. The caller
// must call ask.
func (g *group) want() (filling int) {
	for i := range g.parts {
		if g.twice || g.op != opAcquireAll {
			return 0
		}
		p := &g.parts[i]
		if p.block = p.limiter.blocks.fillable(call{key: p.Key, n: p.N, limit: p.limit}); p.block != nil {
			if p.extra = p.block.want(p.limit.(*bucket), p.N); p.extra > 0 {
				filling++
			}
		}
	}
	return filling
}

// ask asks Redis once. all reports whether all parts are charged.
func (g *group) ask(ctx context.Context, leases []algo.Lease) (all, answered bool) {
	r := g.request()
	if g.store.remote.Do(ctx, r) {
		defer r.Free()
		if r.Err == nil {
			all, answered = g.answer(r, leases)
		}
		if answered {
			return all, true
		}
		g.parts[0].limiter.reportKeyFault(r)
	}
	for i := range g.parts {
		g.parts[i].block.failed(g.parts[i].extra)
	}
	return false, false
}

func (g *group) request() *remote.Request {
	r := remote.NewRequest(g.parts[0].limit.script(), "", remote.Args{})
	n := len(g.parts)
	r.Keys, r.Args, r.Reply = make([]string, n), make([]int64, 0, n*r.Script.Args), make([]int64, n*r.Script.Replies)
	for i := range g.parts {
		p := &g.parts[i]
		a := p.limit.acquireArgs(p.Key, p.units())
		a[0] = g.op + 16*int64(n-i)
		r.Keys[i] = p.key
		r.Args = append(r.Args, a[:r.Script.Args]...)
	}
	if g.op == opAcquireAll {
		r.Undo = g
	}
	return r
}

// answer writes the answer to leases and fills blocks. all reports whether all parts are
// charged; ok is false if a key holds a value of another type.
func (g *group) answer(r *remote.Request, leases []algo.Lease) (all, ok bool) {
	decisions, handles, all := g.explain(r)
	for i := range g.parts {
		if r.Answer(i).Flag() == flagWrongType {
			return false, false
		}
	}
	for i := range g.parts {
		p, d := &g.parts[i], &decisions[i]
		if r.Answer(i).Mixed() {
			p.limiter.reportMixed()
		}
		d.Source = algo.SourceRemote
		p.limiter.blame(d, p.Key)
		if g.op == opAcquireAll {
			p.limiter.fallback.follow(p.Key, d)
		}
		p.fill(r, handles[i], d, all)
		switch {
		case !all || g.op != opAcquireAll:
			if !g.twice { // then a reply has the costs of earlier parts
				g.store.denied.note(p.key, p.limit, r.Answer(i), r.Sent, d, p.corrections)
			}
			leases[i] = algo.NewLease(*d, nil, algo.Handle{})
		case p.N == 0:
			handles[i].N = 0
			leases[i] = algo.NewLease(*d, (*releaser)(p.limiter), handles[i])
		default:
			g.store.denied.outdate(p.key)
			handles[i].N = p.N
			leases[i] = algo.NewLease(*d, (*releaser)(p.limiter), handles[i])
		}
	}
	return all, true
}

// fill records in the part's block the answer d and the units charged for the block.
func (p *groupPart) fill(r *remote.Request, charge algo.Handle, d *algo.Decision, charged bool) {
	switch {
	case p.block == nil:
	case charged:
		p.block.fill(r, charge, d, p.extra)
		d.Remaining = min(d.Remaining+p.extra, d.Limit)
	default:
		p.block.failed(p.extra)
		p.block.fill(r, charge, d, 0)
	}
}

// explain explains the parts in order, each after the charges of earlier ones.
// Without a charge the decisions describe the limits as they are.
func (g *group) explain(r *remote.Request) (decisions []algo.Decision, handles []algo.Handle, all bool) {
	decisions, handles, all = make([]algo.Decision, len(g.parts)), make([]algo.Handle, len(g.parts)), true
	for i := range g.parts {
		p, d := &g.parts[i], &decisions[i]
		*d, handles[i] = p.limit.explain(r.Answer(i), p.units())
		handles[i].Key = p.Key
		if p.never {
			d.Allowed, d.Reason, d.RetryAfter = false, algo.Never, algo.Forever
		}
		all = all && d.Allowed && r.Answer(i).Flag() != flagWrongType
	}
	for i := 0; i < len(g.parts) && !all; i++ {
		decisions[i] = uncharged(decisions[i], g.parts[i].limit, r.Answer(i))
	}
	return decisions, handles, all
}

// UndoCharge refunds charges whose caller has stopped waiting.
func (g *group) UndoCharge(r *remote.Request) {
	if r.Err != nil {
		return
	}
	_, handles, all := g.explain(r)
	if !all {
		return
	}
	for i := range g.parts {
		if p := &g.parts[i]; p.units() > 0 {
			p.limiter.correct(p.key, p.limit, p.limit.refundArgs(handles[i], p.units()))
		}
	}
}
