package algo

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/engine"
)

// Credits is a prepaid balance for each key. It is topped up, charges only lower it,
// and time does not bring it back. It is a [Limiter] by itself, and [First] spends
// it when a plan is used up.
//
// Bound: the admitted units of a key, minus its refunds, are at most the sum of its
// top-ups. A lease that is settled to more than its charge may leave a negative
// balance: then nothing is admitted until a top-up covers it. A settlement charges at
// most 2^53 - 1 units.
//
// The Limit of a decision is the balance before it, at least 1. A denial has the Reason
// [Never], because no time suffices. A cancellation or a lower settlement gives back
// everything, however late: credits do not drain.
//
// State is a map, in this process: balances are lost with it. Unlike the other limiters
// it never forgets a key with a balance, so a top-up fails when [MaxKeys] are in use.
// A request alone takes no memory. A decision takes a lock for a few nanoseconds and
// allocates nothing.
//
// Do not use it as a ledger: record purchases and bills where you record
// invoices.
type Credits struct {
	made    int64 // 1 for the first of the process; [First] locks the latest first
	seed    maphash.Seed
	maxKeys int64
	keys    atomic.Int64
	stripes [64]creditStripe
}

var creditsMade atomic.Int64

// creditStripe is the balances of some keys. A balance of 0 is not kept.
type creditStripe struct {
	mu       sync.Mutex
	balances map[string]int64
	_        [48]byte // neighbors do not share a cache line
}

// NewCredits makes balances of 0, with the option [MaxKeys].
func NewCredits(opts ...Option) (*Credits, error) {
	k := kind{title: "credits", takes: []string{"MaxKeys"}}
	s, err := k.configure(Spec{}, opts)
	if err != nil {
		return nil, err
	}
	c := &Credits{made: creditsMade.Add(1), seed: maphash.MakeSeed(), maxKeys: int64(int(cmp.Or(s.MaxKeys, engine.DefaultMaxKeys)))}
	for i := range c.stripes {
		c.stripes[i].balances = map[string]int64{}
	}
	return c, nil
}

// TopUp adds n units to the balance of key. The error is [ErrCost] for a negative n, or
// one that lifts the balance above 2^53 - 1; or it says that MaxKeys keys have a
// balance. Nothing is added then.
func (c *Credits) TopUp(key string, n int64) error {
	if n < 0 {
		return costError(n)
	}
	s := c.lock(key)
	defer s.mu.Unlock()
	was, known := s.balances[key]
	switch {
	case n > decide.MaxBalance-max(was, 0):
		return fmt.Errorf("%w: credits: a top-up of %d to a balance of %d exceeds %d", ErrCost, n, was, int64(decide.MaxBalance))
	case !known && n > 0 && c.keys.Load() >= c.maxKeys:
		return fmt.Errorf("algo: credits: %d keys have a balance and there is no room for another: raise MaxKeys", c.maxKeys)
	}
	c.add(s, key, n)
	return nil
}

// Balance returns the units of key; below 0 it has debt.
func (c *Credits) Balance(key string) int64 {
	s := c.lock(key)
	defer s.mu.Unlock()
	return s.balances[key]
}

// Acquire charges n units to the balance of key if it has them; see [Limiter]. It
// ignores ctx, because it never waits. A negative n is [ErrCost].
func (c *Credits) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	if n < 0 {
		return lease, costError(n)
	}
	s := c.lock(key)
	defer s.mu.Unlock()
	if lease.Decision = creditDecision(s.balances[key], n); lease.Allowed {
		lease.Remaining -= n
		lease.releaser, lease.handle = (*creditReleaser)(c), Handle{Key: key, N: n}
		c.add(s, key, -n)
	}
	return lease, nil
}

// Allow is the short form of Acquire for callers that need only Allowed. A negative n
// is denied.
func (c *Credits) Allow(key string, n int64) bool {
	lease, err := c.Acquire(context.Background(), key, n)
	return err == nil && lease.Allowed
}

// About states no quota, because each key has its own.
func (c *Credits) About() Description { return Description{} }

// Peek returns the answer of Acquire, and charges nothing; see [Peeker].
func (c *Credits) Peek(_ context.Context, key string, n int64) (Decision, error) {
	if n < 0 {
		return Decision{}, costError(n)
	}
	return creditDecision(c.Balance(key), n), nil
}

// creditDecision decides about n units, and states the balance before the charge. The Limit
// of an empty balance is 1: 0 would state no limit.
func creditDecision(balance, n int64) Decision {
	balance = max(balance, 0)
	d := Decision{Allowed: n <= balance, Limit: max(balance, 1), Remaining: balance}
	if !d.Allowed {
		d.Reason, d.RetryAfter = Never, Forever
	}
	return d
}

// lock locks the stripe of key.
func (c *Credits) lock(key string) *creditStripe {
	s := &c.stripes[maphash.String(c.seed, key)%uint64(len(c.stripes))]
	s.mu.Lock()
	return s
}

// leastBalance has room for 500 settlements of MaxBalance: debt that is cut could be given
// back in full.
const leastBalance = -1 << 62

// add changes the balance of key by n, at most MaxBalance up or down. The caller holds the
// lock of s.
func (c *Credits) add(s *creditStripe, key string, n int64) {
	was, known := s.balances[key]
	is := min(max(was+n, leastBalance), decide.MaxBalance)
	switch {
	case is == 0 && known:
		delete(s.balances, key)
		c.keys.Add(-1)
	case is != 0:
		s.balances[key] = is
		if !known {
			c.keys.Add(1)
		}
	}
}

// creditReleaser is the side of Credits of its leases.
type creditReleaser Credits

// Release gives back a canceled charge.
func (r *creditReleaser) Release(h Handle, o Outcome) {
	if o.Result() == Canceled {
		r.Settle(h, 0)
	}
}

// Settle corrects the charge.
func (r *creditReleaser) Settle(h Handle, actual int64) {
	c := (*Credits)(r)
	s := c.lock(h.Key)
	defer s.mu.Unlock()
	c.add(s, h.Key, min(h.N, decide.MaxBalance)-min(actual, decide.MaxBalance))
}
