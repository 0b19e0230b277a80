package distributed

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// Fallback is how limits decide while Redis is away. Such decisions have the
// Source [algo.SourceFallback]. They are never errors, and a denial that does
// not come from a limit has the Reason Overload.
type Fallback uint8

const (
	// FallbackLocal divides each limit by the number of instances; each instance
	// keeps its share in the process. All instances together admit at most the
	// limit. The local limiters are kept as full as the shared ones, so the
	// change to local decisions grants no fresh burst. If the burst is smaller
	// than the number of instances, some have no share and deny.
	FallbackLocal Fallback = iota
	// FallbackAllow admits everything: availability matters more than the limit.
	FallbackAllow
	// FallbackDeny denies everything: the limit protects a fragile resource.
	FallbackDeny
)

// String returns the policy's name.
func (f Fallback) String() string {
	return nameOf(int(f), "FallbackLocal", "FallbackAllow", "FallbackDeny")
}

// Recovery selects the treatment, when Redis is back, of units that were
// admitted without it.
type Recovery uint8

const (
	// RecoveryForget leaves the shared limits as they are: they have refilled
	// meanwhile, so a key may spend its burst again.
	RecoveryForget Recovery = iota
	// RecoveryCharge charges the units to the shared limits, at most a burst for
	// each instance and key. It keeps up to 10000 keys of each limit; units of
	// other keys and units in flight are forgotten. Refunds of local admissions
	// are not deducted.
	RecoveryCharge
)

// String returns the recovery's name.
func (r Recovery) String() string { return nameOf(int(r), "RecoveryForget", "RecoveryCharge") }

// fallback decides for one limiter while Redis is away.
type fallback struct {
	limiter *Limiter
	mu      sync.Mutex                   // serialises resize
	local   atomic.Pointer[algo.Limiter] // nil: this instance has no share
	debts   *debts                       // nil: RecoveryForget
}

// resize adjusts the local limiter to the limit and the number of instances.
// Keys keep their debt, unless a new limiter is needed.
func (f *fallback) resize() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var was algo.Limiter
	if p := f.local.Load(); p != nil {
		was = *p
	}
	if next := f.limiter.load().local(f.limiter.store.registry.known(), was); next != nil {
		f.local.Store(&next)
	} else {
		f.local.Store(nil)
	}
}

// acquire decides without Redis.
func (f *fallback) acquire(ctx context.Context, lease *algo.Lease, key string, n int64) {
	lim := f.limiter.load()
	quota := lim.describe().Quota
	switch f.limiter.store.fallback {
	case FallbackAllow:
		lease.Decision = algo.Decision{Allowed: true, Limit: quota, Remaining: quota}
	case FallbackDeny:
		f.deny(lease, quota, n)
	default:
		f.spend(ctx, lease, key, n)
	}
	if n > lim.maxCost() {
		*lease = algo.Lease{Decision: algo.Decision{
			Reason: algo.Never, Limit: quota, Remaining: lease.Remaining, RetryAfter: algo.Forever,
		}}
	}
	lease.Source = algo.SourceFallback
}

// spend takes n from this instance's share. A cost that fits the limit but not
// the share is Overload: the caller may send it again.
func (f *fallback) spend(ctx context.Context, lease *algo.Lease, key string, n int64) {
	local := f.local.Load()
	if local == nil {
		f.deny(lease, 0, n)
		return
	}
	*lease, _ = (*local).Acquire(ctx, key, n) // the only error is a negative n
	if lease.Allowed {
		f.debts.add(key, n)
	}
	if lease.Reason == algo.Never {
		lease.Reason, lease.RetryAfter = algo.Overload, f.limiter.store.probeInterval
	}
}

// deny denies n units without a limit. A peek is never denied.
func (f *fallback) deny(lease *algo.Lease, quota, n int64) {
	d := algo.Decision{Limit: quota, Allowed: n == 0}
	if n > 0 {
		d.Reason, d.RetryAfter = algo.Overload, f.limiter.store.probeInterval
	}
	lease.Decision = d
}

// follow keeps the local limiter at most as full as the shared limit, which has
// just decided d about key: it spends the units that the local limiter has in
// excess, in proportion. So the change to local decisions grants no unit twice.
func (f *fallback) follow(key string, d *algo.Decision) {
	p := f.local.Load()
	if f.limiter.store.fallback != FallbackLocal || f.limiter.slots != nil || p == nil || d.Limit <= 0 {
		return
	}
	ctx, local := context.Background(), *p
	peek, err := local.Acquire(ctx, key, 0)
	if err != nil {
		return
	}
	want := int64(float64(peek.Limit) * (float64(d.Remaining) / float64(d.Limit)))
	if surplus := peek.Remaining - want; surplus > 0 {
		_, _ = local.Acquire(ctx, key, surplus) // a denial means that it is as empty already
	}
}

// debts is the units that this instance has admitted without Redis. A nil
// pointer keeps nothing.
type debts struct {
	mu    sync.Mutex
	spent map[string]int64
}

const (
	maxDebts  = 10_000
	debtBatch = 64 // charges between two pauses, so that instances do not all charge at once
)

func newDebts() *debts { return &debts{spent: map[string]int64{}} }

func (d *debts) add(key string, n int64) {
	if d == nil || n == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.spent[key]; known || len(d.spent) < maxDebts {
		d.spent[key] += n
	}
}

func (d *debts) take() map[string]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.spent
	d.spent = map[string]int64{}
	return all
}

// charge charges all debts to l, in batches with random pauses.
func (d *debts) charge(l *Limiter) {
	lim := l.load()
	done := 0
	for key, n := range d.take() {
		if done%debtBatch == 0 && !l.store.sleep(rand.N(20*time.Millisecond)) {
			return
		}
		done++
		h := algo.Handle{State: [3]int64{newID()}}
		l.correct(l.redisKey(key), lim.script(), lim.forceArgs(key, h, min(n, lim.describe().Quota)))
	}
}
