package distributed

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
)

// Limiter is a limit whose state is in Redis. It is an [algo.Limiter].
type Limiter struct {
	store   *Store
	name    string
	escaped string // name, for keys
	kind    string // such as "token bucket", for errors

	setting sync.Mutex // serialises SetSpec, SetRate and SetBurst
	spec    algo.Spec
	limit   atomic.Pointer[limit]

	closed atomic.Bool

	fallback fallback
	slots    *slots  // of an in-flight limit, otherwise nil
	blocks   *blocks // nil: every decision is exact
}

// leaser is a limit that leases its units elsewhere: an answer may ask for more.
type leaser interface {
	leaseIfAsked(home *Limiter, r *remote.Request, key string)
	dropLease(home *Limiter, r *remote.Request)
}

// About returns the limit as callers see it.
func (l *Limiter) About() algo.Description {
	d := l.load().describe()
	d.Remote = true
	return d
}

func (l *Limiter) redisKey(key string) string { return remote.Key(l.store.prefix, l.escaped, key) }

// Acquire charges n units to key if they fit; see [algo.Limiter]. It waits for
// Redis as long as [WithTimeout] says; then, or while Redis is known to be away, the
// fallback decides. If ctx ends before, and the breaker is not open, the answer is a denial
// with the Reason Overload: a caller that has left is no outage. The error is [algo.ErrCost]
// for a negative n, or [ErrClosed].
func (l *Limiter) Acquire(ctx context.Context, key string, n int64) (lease algo.Lease, err error) {
	if err = l.usable(n); err != nil || l.blocks.spend(&lease, key, n) {
		return lease, err
	}
	c := call{ctx: ctx, key: key, redisKey: l.redisKey(key), n: n, limit: l.load()}
	if l.store.denied.denies(&lease.Decision, c.limit, c.redisKey, n) {
		return lease, nil
	}
	if !l.remote(c, &lease) {
		l.fallback.acquire(c, &lease)
	}
	return lease, nil
}

// usable reports a negative n and a closed limit, and counts the instances from the first call on.
func (l *Limiter) usable(n int64) error {
	switch {
	case n < 0:
		return l.errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	case l.isClosed():
		return ErrClosed
	}
	l.store.registry.start()
	return nil
}

// Close returns unspent blocks and frees the memory and the name of the limit in this
// process; its keys expire in Redis on their own. Acquire returns [ErrClosed]
// afterwards; leases may still be settled and released. A limit that lives as long
// as its store needs no Close.
func (l *Limiter) Close() error {
	if l.closed.CompareAndSwap(false, true) {
		l.blocks.close()
		l.store.unregister(l)
	}
	return nil
}

func (l *Limiter) isClosed() bool { return l.closed.Load() || l.store.remote.Closed() }

func (l *Limiter) replace(lim limit) {
	l.limit.Store(&lim)
	l.fallback.resize()
}

func (l *Limiter) load() limit { return *l.limit.Load() }

func (l *Limiter) errorf(format string, args ...any) error {
	return fmt.Errorf("distributed: %s %q: "+format, append([]any{l.kind, l.name}, args...)...)
}

// call is one Acquire on its way to Redis.
type call struct {
	ctx      context.Context
	key      string
	redisKey string
	n        int64
	limit    limit
	look     bool // charges nothing

	corrections uint64 // of the key, before the request
}

// remote lets Redis decide, and perhaps charge a block. It reports false if
// there is no answer.
func (l *Limiter) remote(c call, lease *algo.Lease) bool {
	c.corrections = l.store.denied.corrections(c.redisKey)
	if k := l.blocks.fillable(c); k != nil {
		return k.acquire(c, lease)
	}
	r := l.ask(c, 0)
	if r == nil {
		return false
	}
	defer r.Free()
	l.fillLease(lease, r, c)
	return true
}

// ask asks whether c.n + extra units fit, and returns the answered request, or
// nil if there is no answer.
func (l *Limiter) ask(c call, extra int64) *remote.Request {
	r := remote.NewRequest(c.limit.script(), c.redisKey, c.args(extra))
	r.Name, r.Limit, r.N, r.Undo = l.name, c.limit, c.charge(extra), (*releaser)(l)
	if !l.store.remote.Do(c.ctx, r) {
		return nil
	}
	if r.Err != nil || r.Answer(0).Flag() == flagWrongType {
		l.reportKeyFault(r)
		l.undoUnknown(r, c.limit)
		r.Free()
		return nil
	}
	if r.Answer(0).Mixed() {
		l.reportMixed()
	}
	return r
}

// fillLease turns the reply into a lease on c.n units, and returns the handle of all units
// that were charged.
func (l *Limiter) fillLease(lease *algo.Lease, r *remote.Request, c call) algo.Handle {
	if c.look {
		lease.Decision = l.looked(r, c)
		return algo.Handle{}
	}
	d, h := c.limit.explain(r.Answer(0), r.N)
	d.Source = algo.SourceRemote
	l.blame(&d, c.key)
	l.fallback.follow(c.key, &d)
	if g, ok := c.limit.(leaser); ok {
		g.leaseIfAsked(l, r, c.key)
	}
	if !d.Allowed || r.N == 0 {
		l.store.denied.note(c.redisKey, c.limit, r.Answer(0), r.Sent, &d, c.corrections)
		if *lease = (algo.Lease{Decision: d}); d.Allowed {
			h.Key, h.N = c.key, 0
			*lease = algo.NewLease(d, (*releaser)(l), h)
		}
		return h
	}
	l.store.denied.outdate(c.redisKey)
	charged := h
	h.Key, h.N = c.key, c.n
	if l.slots != nil {
		l.slots.keep(h, h.N)
	}
	*lease = algo.NewLease(d, (*releaser)(l), h)
	return charged
}

// blame turns a denial of units in flight under the empty key, which all callers share, into
// a lack of capacity.
func (l *Limiter) blame(d *algo.Decision, key string) {
	if key == "" && d.Reason == algo.Quota && l.slots != nil {
		d.Reason = algo.Overload
	}
}

func (l *Limiter) reportKeyFault(r *remote.Request) {
	err := r.Err
	if err == nil {
		err = errWrongType
	} else if remote.Classify(err) != remote.KeyFault || remote.SeveralSlots(err) { // later requests go one by one
		return
	}
	l.store.failed(remote.KeyFault, fmt.Errorf("%s %q: %w", l.kind, l.name, err))
	if l.store.mayLog("key fault of " + l.name) {
		l.store.emit(Event{Kind: KeyFault, Limiter: l.name, Err: err})
	}
}

// reportMixed reports that an instance uses other parameters for the limit.
func (l *Limiter) reportMixed() {
	if l.store.mayLog("mixed parameters") {
		l.store.logger.Warn("distributed: instances use different parameters for one limit, or it has just been changed; meanwhile a key has at most the sum of both", "limit", l.name)
	}
	if l.store.mayLog("mixed parameters of " + l.name) {
		l.store.emit(Event{Kind: MixedParameters, Limiter: l.name})
	}
}

// Reset forgets the debt of key and lifts a ban, in all instances. Earlier
// admissions cannot be refunded afterwards. The error is ErrUnavailable, or the
// error of Redis.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	return l.overrule(ctx, key, l.load().resetArgs(key))
}

// Ban denies every cost of key for d, 0 too, in all instances; d is more than 0, at most 365
// days. A shorter ban does not shorten an earlier one. Reset lifts it. Debt is forgotten
// when the ban ends, so a ban lasts at least until the debt would have drained. Blocks
// in other instances may still be spent. The error is ErrUnavailable, or the error of
// Redis.
func (l *Limiter) Ban(ctx context.Context, key string, d time.Duration) error {
	if d <= 0 || d > decide.MaxSpan {
		return l.errorf("ban is %v, want more than 0, at most %v", d, decide.MaxSpan)
	}
	return l.overrule(ctx, key, remote.Args{opBan, d.Microseconds() + 1})
}

// overrule executes a command after which the block of key is void.
func (l *Limiter) overrule(ctx context.Context, key string, a remote.Args) error {
	if !l.isClosed() {
		defer l.blocks.drop(key)
	}
	_, err := l.execute(ctx, key, a)
	return err
}

// execute sends a command that Redis must execute. given is the second integer of the reply.
func (l *Limiter) execute(ctx context.Context, key string, a remote.Args) (given int64, err error) {
	if l.isClosed() {
		return 0, ErrClosed
	}
	redisKey := l.redisKey(key)
	defer l.store.denied.drop(redisKey)
	r := remote.NewRequest(l.load().script(), redisKey, a)
	if err = l.store.execute(ctx, r, l.kind, l.name); err != nil {
		return 0, err
	}
	defer r.Free()
	return r.Answer(0).Reply[1], nil
}
