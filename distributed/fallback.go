package distributed

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
)

// Fallback is how limits decide while Redis is away. Such decisions have the
// Source [algo.SourceFallback]. They are never errors, and a denial that is not a
// limit's own has the Reason Overload.
type Fallback uint8

const (
	// Local divides each limit by the number of instances and keeps the parts
	// in the processes. All instances together admit what the limit admits at
	// most. The local buckets are kept as full as the shared ones, so going
	// over to them hands out no fresh burst. Where the burst is smaller than
	// the number of instances, some have no part and deny.
	Local Fallback = iota
	// AllowAll admits everything: being reachable matters more than the limit.
	AllowAll
	// DenyAll denies everything: the limit protects something that breaks.
	DenyAll
)

// fallback decides for one limiter while Redis is away.
type fallback struct {
	limiter *Limiter
	mu      sync.Mutex
	stand   stand // made once, then adjusted
	keyed   []algo.Option
	part    atomic.Pointer[part]
	debts   *debts // nil: forgotten
}

// part is what this instance has of the limit. A nil stand means nothing.
type part struct{ stand stand }

// stand is the local limiter that stands in for the shared one.
type stand interface {
	algo.Limiter
	// fit adjusts it; false if that cannot be done.
	fit(a allowance) bool
	// warm makes it at most as full as the shared one: d is what Redis has
	// just said about key.
	warm(key string, d *algo.Decision)
}

// resize adjusts the stand to the limit and the number of instances. What keys
// owe stays owed, unless only a new stand will do.
func (f *fallback) resize() {
	f.mu.Lock()
	defer f.mu.Unlock()
	lim := f.limiter.load()
	a, ok := lim.share(f.limiter.store.registry.known())
	if ok && (f.stand == nil || !f.stand.fit(a)) {
		var err error
		f.stand, err = lim.local(a, f.keyed)
		ok = err == nil
	}
	if !ok {
		f.stand = nil
	}
	f.part.Store(&part{f.stand})
}

// acquire decides without Redis.
func (f *fallback) acquire(ctx context.Context, lease *algo.Lease, key string, n int64) {
	lim := f.limiter.load()
	quota := lim.describe().Quota
	switch f.limiter.store.fallback {
	case AllowAll:
		lease.Decision = algo.Decision{Allowed: true, Limit: quota, Remaining: quota}
	case DenyAll:
		f.deny(lease, quota, n)
	default:
		f.spend(ctx, lease, key, n)
	}
	if n > lim.largest() {
		*lease = algo.Lease{Decision: algo.Decision{
			Reason: algo.Never, Limit: quota, Remaining: lease.Remaining, RetryAfter: algo.Forever,
		}}
	}
	lease.Source = algo.SourceFallback
}

// spend takes n from this instance's part. A cost that fits the limit but not
// the part is not the caller's fault.
func (f *fallback) spend(ctx context.Context, lease *algo.Lease, key string, n int64) {
	p := f.part.Load()
	if p.stand == nil {
		f.deny(lease, 0, n)
		return
	}
	*lease, _ = p.stand.Acquire(ctx, key, n) // the only error is a negative n
	if lease.Allowed {
		f.debts.add(key, n)
	}
	if lease.Reason == algo.Never {
		lease.Reason, lease.RetryAfter = algo.Overload, f.limiter.store.probeInterval
	}
}

// deny answers for want of a limit to ask. Looking (n = 0) is never denied.
func (f *fallback) deny(lease *algo.Lease, quota, n int64) {
	d := algo.Decision{Limit: quota, Allowed: n == 0}
	if n > 0 {
		d.Reason, d.RetryAfter = algo.Overload, f.limiter.store.probeInterval
	}
	lease.Decision = d
}

// warm keeps the stand at most as full as the shared limit.
func (f *fallback) warm(key string, d *algo.Decision) {
	if p := f.part.Load(); p != nil && p.stand != nil && d.Limit > 0 {
		p.stand.warm(key, d)
	}
}

// String names the policy.
func (f Fallback) String() string { return nameOf(int(f), "Local", "AllowAll", "DenyAll") }
