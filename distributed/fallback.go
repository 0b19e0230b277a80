package distributed

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/cause"
)

// fallback decides for one limiter while Redis is away.
type fallback struct {
	limiter *Limiter
	mu      sync.Mutex // serialises resize
	local   atomic.Pointer[algo.Limiter]
	small   bool // tooSmall, and logged
}

// resize adjusts the local limiter to the limit and the number of instances.
// Keys keep their debt, unless a new limiter is needed.
func (f *fallback) resize() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var before algo.Limiter
	if p := f.local.Load(); p != nil {
		before = *p
	}
	of := f.limiter.store.registry.known()
	next := f.limiter.load().local(of, before)
	f.local.Store(&next)
	was := f.small
	if f.small = f.tooSmall(of); f.small && !was {
		f.limiter.store.logger.Warn("distributed: a limit is smaller than the number of instances: without Redis each admits one unit at a time",
			"limit", f.limiter.name, "units", f.limiter.load().describe().Quota, "instances", of.count)
	}
}

// tooSmall reports whether the limit has less than a unit for each instance.
func (f *fallback) tooSmall(of instances) bool {
	return f.limiter.store.fallback == FallbackLocal && !of.assumed && f.limiter.load().describe().Quota < int64(of.count)
}

// acquire decides without Redis. Every policy denies a caller that left while Redis answers:
// otherwise a client would get a second limit by leaving early.
func (f *fallback) acquire(c call, lease *algo.Lease) {
	lim, key, n, store := c.limit, c.key, c.n, f.limiter.store
	quota := lim.describe().Quota
	switch left := remote.HasLeft(c.ctx) && !store.remote.Node(c.redisKey).Away(); {
	case left || store.fallback == FallbackDeny:
		f.deny(lease, lim, key, n)
	case store.fallback == FallbackAllow:
		lease.Decision = algo.Decision{Allowed: true, Limit: quota, Remaining: quota}
	case c.look:
		lease.Decision, _ = algo.Peek(c.ctx, *f.local.Load(), key, possible(n, lim.maxCost()))
	default:
		*lease, _ = (*f.local.Load()).Acquire(c.ctx, key, possible(n, lim.maxCost())) // the only error is a negative n
	}
	if n > lim.maxCost() {
		*lease = algo.Lease{Decision: algo.Decision{
			Reason: algo.Never, Limit: quota, Remaining: lease.Remaining, RetryAfter: algo.Forever,
		}}
	}
	lease.Source = algo.SourceFallback
}

// deny denies n > 0 units. It admits a call of 0 units, whose settlement is charged when Redis answers.
func (f *fallback) deny(lease *algo.Lease, lim limit, key string, n int64) {
	*lease = algo.Lease{Decision: algo.Decision{Limit: lim.describe().Quota}}
	if n > 0 {
		lease.Reason, lease.Cause, lease.RetryAfter = algo.Overload, cause.Store, f.limiter.store.probeInterval
		return
	}
	args := lim.acquireArgs(key, 0)
	_, h := lim.explain(remote.Answer{Args: args[:], Reply: make([]int64, lim.script().Replies)}, 0)
	h.Key, h.N = key, 0
	lease.Allowed = true
	*lease = algo.NewLease(lease.Decision, (*releaser)(f.limiter), h)
}

// follow keeps the local limiter at most as full as the shared limit, which has
// just decided d about key: it spends the local excess, in proportion. So the
// change to local decisions grants no unit twice.
func (f *fallback) follow(key string, d *algo.Decision) {
	if f.limiter.store.fallback != FallbackLocal || f.limiter.slots != nil || d.Limit <= 0 {
		return
	}
	ctx, local := context.Background(), *f.local.Load()
	peek, err := local.Acquire(ctx, key, 0)
	if err != nil {
		return
	}
	want := int64(math.Ceil(float64(peek.Limit) * (float64(d.Remaining) / float64(d.Limit))))
	if surplus := peek.Remaining - want; surplus > 0 {
		_, _ = local.Acquire(ctx, key, surplus) // a denial means that it is as empty already
	}
}

// fallbackAll decides all or nothing without Redis; with look it charges nothing.
func fallbackAll(ctx context.Context, reqs []algo.Request, leases []algo.Lease, look bool) {
	all := true
	for i, r := range reqs {
		l, n := r.Limiter.(*Limiter), r.N
		for _, before := range reqs[:i] {
			if look && before.Limiter == r.Limiter && before.Key == r.Key {
				n += min(before.N, math.MaxInt64-n)
			}
		}
		l.fallback.acquire(call{ctx: ctx, key: r.Key, redisKey: l.redisKey(r.Key), n: n, limit: l.load(), look: look}, &leases[i])
		all = all && leases[i].Allowed
	}
	if all || look {
		return
	}
	for i := len(leases) - 1; i >= 0; i-- {
		leases[i].Release(algo.Canceled)
	}
}
