package distributed

import (
	"context"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// Peek returns the answer of Acquire, from Redis or the fallback, and charges nothing.
func (l *Limiter) Peek(ctx context.Context, key string, n int64) (algo.Decision, error) {
	var lease algo.Lease
	err := l.usable(n)
	switch c := (call{ctx: ctx, key: key, redisKey: l.redisKey(key), n: n, limit: l.load(), look: true}); {
	case err != nil, l.store.denied.denies(&lease.Decision, c.limit, c.redisKey, n):
	case l.blocks.spend(&lease, key, n):
		undo(&lease, n)
	case !l.remote(c, &lease):
		l.fallback.acquire(c, &lease)
	}
	return lease.Decision, err
}

// charge returns the units to charge for c and extra ones: 0 for a look.
func (c *call) charge(extra int64) int64 {
	if c.look {
		return 0
	}
	return c.n + extra
}

// args returns the arguments of that request.
func (c *call) args(extra int64) remote.Args {
	if _, ok := c.limit.(holder); ok && c.look { // its script finds when enough units are free
		a := c.limit.acquireArgs(c.key, c.n)
		a[0] = opPeekAll
		return a
	}
	return c.limit.acquireArgs(c.key, c.charge(extra))
}

// looked turns the reply into the answer for c.n units that were not charged.
func (l *Limiter) looked(r *remote.Request, c call) algo.Decision {
	d, _ := c.limit.explain(r.Answer(0), c.n)
	d = uncharged(d, c.limit, r.Answer(0))
	d.Source = algo.SourceRemote
	l.blame(&d, c.key)
	return d
}

// uncharged returns the decision was, with the quota as it is without the charge.
func uncharged(was algo.Decision, lim limit, a remote.Answer) algo.Decision {
	d, _ := lim.explain(a, 0)
	d.Allowed, d.Reason, d.Cause, d.Delay, d.RetryAfter = was.Allowed, was.Reason, was.Cause, was.Delay, was.RetryAfter
	return d
}

// undo refunds n units of lease and keeps the decision, as of a peek.
func undo(lease *algo.Lease, n int64) {
	d := lease.Decision
	lease.Release(algo.Canceled)
	d.Remaining = min(d.Remaining+n, d.Limit)
	*lease = algo.Lease{Decision: d}
}
