package distributed

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// holders is what this instance holds of an in-flight limit: it renews what
// Redis admitted, and decides alone while Redis is away.
type holders struct {
	limiter *Limiter
	expiry  time.Duration
	once    sync.Once

	mu     sync.Mutex
	most   int64                 // this instance's part, while Redis is away
	counts map[string]int64      // units in flight, by key
	remote map[int64]algo.Handle // what Redis admitted, by id
}

func newHolders(expiry time.Duration) *holders {
	return &holders{expiry: expiry, counts: map[string]int64{}, remote: map[int64]algo.Handle{}}
}

// add notes what Redis admitted, and begins to renew.
func (o *holders) add(h algo.Handle) {
	o.mu.Lock()
	o.remote[h.State[0]] = h
	o.count(h.Key, h.N)
	o.mu.Unlock()
	o.once.Do(func() { o.limiter.store.help(o.renew) })
}

func (o *holders) remove(h algo.Handle) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.remote, h.State[0])
	o.count(h.Key, -h.N)
}

func (o *holders) settle(h algo.Handle, actual int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count(h.Key, actual-h.N)
	h.N = actual
	o.remote[h.State[0]] = h
}

// count adds n units to what a key has in flight. The caller holds o.mu.
func (o *holders) count(key string, n int64) {
	if now := o.counts[key] + n; now > 0 {
		o.counts[key] = now
	} else {
		delete(o.counts, key)
	}
}

// renew keeps what is held from expiring.
func (o *holders) renew() {
	for o.limiter.store.sleep(o.expiry/4 + rand.N(o.expiry/12)) {
		o.mu.Lock()
		held := make([]algo.Handle, 0, len(o.remote))
		for _, h := range o.remote {
			held = append(held, h)
		}
		o.mu.Unlock()
		for _, h := range held {
			a := args{opRenew, o.expiry.Microseconds(), 0, h.N, h.State[0]}
			o.limiter.store.tell(ask(heldScript, o.limiter.redisKey(h.Key), a))
		}
	}
}

// Acquire decides within this instance's part. It makes holders a stand.
func (o *holders) Acquire(_ context.Context, key string, n int64) (algo.Lease, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	inFlight := o.counts[key]
	d := algo.Decision{Limit: o.most, Allowed: true}
	if n > 0 && inFlight+n > o.most {
		d.Allowed, d.Reason, d.RetryAfter = false, algo.Overload, time.Second
		n = 0
	}
	o.count(key, n)
	d.Remaining = max(o.most-inFlight-n, 0)
	if n == 0 {
		return algo.NewLease(d, nil, algo.Handle{}), nil
	}
	return algo.NewLease(d, (*localHolder)(o), algo.Handle{Key: key, N: n}), nil
}

func (o *holders) fit(a allowance) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.most = a.burst
	return true
}

// warm has nothing to do: what Redis admitted is counted.
func (o *holders) warm(string, *algo.Decision) {}

// localHolder is the side of leases that Redis knows nothing of.
type localHolder holders

func (l *localHolder) Release(h algo.Handle, _ algo.Outcome) { l.Settle(h, 0) }

func (l *localHolder) Settle(h algo.Handle, actual int64) {
	o := (*holders)(l)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count(h.Key, actual-h.N)
}
