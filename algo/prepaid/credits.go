package prepaid

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"

	"github.com/sluice-go/sluice/algo"
)

// Credits keeps a prepaid balance for each key, in this process. Top-ups raise it, charges lower
// it, and time does not change it. It is a limiter by itself, and [First] spends it when a plan is
// used up.
//
// Bound: the admitted units of a key, minus its refunds, are at most the sum of its top-ups. A
// settlement above the charge may leave a negative balance: then nothing is admitted until a top-up
// covers it. A settlement charges at most 2^53 - 1 units.
//
// The Limit of a decision is the balance before it, at least 1. A denial has the Reason
// [algo.Never], because waiting is useless. A cancellation or a lower settlement refunds
// everything, however late.
//
// State is a map with an entry for each key whose balance is not 0. It is lost with the process,
// and is no ledger. A request alone takes no memory. A decision takes a lock for a few nanoseconds
// and allocates nothing.
type Credits struct {
	seed    maphash.Seed
	stripes [64]stripe
}

// stripe holds the balances of some keys.
type stripe struct {
	mu       sync.Mutex
	balances map[string]int64
	_        [48]byte // neighbors do not share a cache line
}

// NewCredits makes balances of 0.
func NewCredits() *Credits {
	c := &Credits{seed: maphash.MakeSeed()}
	for i := range c.stripes {
		c.stripes[i].balances = map[string]int64{}
	}
	return c
}

const (
	// most is the largest balance and the largest charge, as on Redis: 2^53 - 1.
	most = 1<<53 - 1
	// least has room for 500 settlements of most: if debt were cut, its refund could exceed the
	// charge.
	least = -1 << 62
)

// TopUp adds n units to the balance of key. It adds nothing and returns [algo.ErrCost] for a
// negative n, or one that lifts the balance above 2^53 - 1.
func (c *Credits) TopUp(key string, n int64) error {
	s := c.lock(key)
	defer s.mu.Unlock()
	was := s.balances[key]
	if n < 0 || n > most-max(was, 0) {
		return fmt.Errorf("%w: prepaid: a top-up of %d to a balance of %d: want 0 or more, and at most %d together", algo.ErrCost, n, was, int64(most))
	}
	s.add(key, n)
	return nil
}

// Balance returns the units of key; below 0 it has debt.
func (c *Credits) Balance(key string) int64 {
	s := c.lock(key)
	defer s.mu.Unlock()
	return s.balances[key]
}

// Acquire charges n units to the balance of key if it has them; see [algo.Limiter]. It
// ignores ctx, because it never waits. A negative n is [algo.ErrCost].
func (c *Credits) Acquire(_ context.Context, key string, n int64) (lease algo.Lease, err error) {
	if n < 0 {
		return lease, costError(n)
	}
	s := c.lock(key)
	defer s.mu.Unlock()
	if lease.Decision = decide(s.balances[key], n); lease.Allowed {
		lease.Remaining -= n
		*algo.FillLease(&lease, (*releaser)(c)) = algo.Handle{Key: key, N: n}
		s.add(key, -n)
	}
	return lease, nil
}

// About states no quota, because each key has its own.
func (c *Credits) About() algo.Description { return algo.Description{} }

// Peek returns the answer of Acquire, and charges nothing.
func (c *Credits) Peek(_ context.Context, key string, n int64) (algo.Decision, error) {
	if n < 0 {
		return algo.Decision{}, costError(n)
	}
	return decide(c.Balance(key), n), nil
}

// decide decides on n units and states the balance before the charge. The Limit of an empty balance
// is 1, because 0 would state no limit.
func decide(balance, n int64) algo.Decision {
	balance = max(balance, 0)
	d := algo.Decision{Allowed: n <= balance, Limit: max(balance, 1), Remaining: balance}
	if !d.Allowed {
		d.Reason, d.RetryAfter = algo.Never, algo.Forever
	}
	return d
}

// lock locks the stripe of key.
func (c *Credits) lock(key string) *stripe {
	s := &c.stripes[maphash.String(c.seed, key)%uint64(len(c.stripes))]
	s.mu.Lock()
	return s
}

// add changes the balance of key by n. A balance of 0 is not kept.
func (s *stripe) add(key string, n int64) {
	if is := min(max(s.balances[key]+n, least), most); is == 0 {
		delete(s.balances, key)
	} else {
		s.balances[key] = is
	}
}

// releaser releases and settles the leases of Credits.
type releaser Credits

// Release refunds a canceled charge.
func (r *releaser) Release(h algo.Handle, o algo.Outcome) {
	if o.Result() == algo.Canceled {
		r.Settle(h, 0)
	}
}

// Settle corrects the charge.
func (r *releaser) Settle(h algo.Handle, actual int64) {
	s := (*Credits)(r).lock(h.Key)
	defer s.mu.Unlock()
	s.add(h.Key, min(h.N, most)-min(actual, most))
}

func costError(n int64) error { return fmt.Errorf("%w: n is %d, want 0 or more", algo.ErrCost, n) }
