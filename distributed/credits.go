package distributed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
)

// Credits is a limiter with a prepaid balance for each key, in Redis: units come back only by
// top-ups. First of package algo/prepaid spends it when a plan is used up.
//
// Bound: the charges of a key, minus its refunds, are at most the sum of its top-ups, as
// long as Redis keeps its data: a lost balance is 0, and a lost charge can be spent again.
// Without Redis nothing is spent: decisions are [ErrUnavailable]. A lease that is settled to more
// than its charge may leave a negative balance. The Limit of a decision is the balance before it,
// at least 1; a denial has the Reason [algo.Never].
//
// A balance does not expire. Its key also holds the ids of the top-ups of the last 30 days, about
// 160 bytes each, which slow no command. A change to a balance of 0 deletes a key without such ids.
// Redis must not evict the key: use noeviction, or a policy that evicts only keys that expire
// (volatile-lru, -lfu, -random). Do not use it as a ledger.
type Credits struct {
	store   *Store
	name    string
	escaped string
}

// Credits makes balances under name, 1 to 200 bytes, which no limit of the store
// may have. Instances that use the same name share them.
func (s *Store) Credits(name string) (*Credits, error) {
	if name == "" || len(name) > remote.MaxTag {
		return nil, fmt.Errorf("distributed: credits: name %q has %d bytes, want 1 to %d", name, len(name), remote.MaxTag)
	}
	return &Credits{s, name, remote.Escape(name)}, nil
}

// receiptLife is how long Redis keeps the id of a top-up.
const receiptLife = 30 * 24 * time.Hour

// ErrTopUpExists reports that an earlier top-up of the same key and id had another amount.
// It changes nothing.
var ErrTopUpExists = errors.New("distributed: the id has topped up another amount")

// TopUp adds n units to the balance of key, once for each key and id of 1 byte or more: a
// repetition within 30 days, because the reply was lost, changes nothing. The error is
// [ErrUnavailable], after which Redis may have executed it: repeat it with the same id;
// [ErrTopUpExists] if the id was used for another amount; [algo.ErrCost] for a negative n or
// a balance above 2^53 - 1; or the error of Redis.
func (c *Credits) TopUp(ctx context.Context, key, id string, n int64) error {
	switch {
	case n < 0 || n > decide.MaxBalance:
		return c.errorf("%w: top-up is %d, want 0 to %d", algo.ErrCost, n, int64(decide.MaxBalance))
	case id == "":
		return c.errorf("the id of a top-up is empty: without one a repetition would count twice")
	}
	a, err := c.execute(ctx, key, c.redisKey(key)+":"+remote.Escape(id), remote.Args{opTopUp, n, receiptLife.Microseconds()})
	switch {
	case err != nil:
		return err
	case a.flag == flagDenied:
		return c.errorf("%w: a top-up of %d to a balance of %d exceeds %d", algo.ErrCost, n, a.balance, int64(decide.MaxBalance))
	case a.stated != n:
		return c.errorf("%w: of %d units, not %d", ErrTopUpExists, a.stated, n)
	}
	return nil
}

// Balance returns the units of key; a negative balance is debt. The error is
// [ErrUnavailable], or the error of Redis.
func (c *Credits) Balance(ctx context.Context, key string) (int64, error) {
	a, err := c.execute(ctx, key, "", remote.Args{})
	return a.balance, err
}

// Acquire charges n units to the balance of key if it has them; see [algo.Limiter]. A negative n
// is [algo.ErrCost]. If Redis does not answer, a call of 0 units returns a lease beside the
// error; its settlement is charged when Redis is back.
func (c *Credits) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	d, err := c.decide(ctx, key, remote.Args{opSpend, n})
	if n == 0 {
		d.Allowed = true
	}
	if d.Allowed {
		d.Remaining -= n
	}
	return algo.NewLease(d, (*creditsReleaser)(c), algo.Handle{Key: key, N: n}), err
}

// Peek returns the answer of Acquire and charges nothing.
func (c *Credits) Peek(ctx context.Context, key string, n int64) (algo.Decision, error) {
	return c.decide(ctx, key, remote.Args{opRead, n})
}

// About states no quota, because each key has its own.
func (c *Credits) About() algo.Description { return algo.Description{Remote: true} }

// decide executes a, and returns the answer with the balance before the charge.
func (c *Credits) decide(ctx context.Context, key string, a remote.Args) (d algo.Decision, err error) {
	n := a[1]
	if n < 0 {
		return d, c.errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	}
	a[1] = possible(n, decide.MaxBalance)
	got, err := c.execute(ctx, key, "", a)
	if err != nil {
		return d, err
	}
	balance := max(got.balance, 0) // the Limit of an empty one is 1: 0 would state no limit
	d = algo.Decision{Allowed: n <= balance, Source: algo.SourceRemote, Limit: max(balance, 1), Remaining: balance}
	if !d.Allowed {
		d.Reason, d.RetryAfter = algo.Never, algo.Forever
	}
	return d, nil
}

// creditsReleaser keeps the methods for leases and late replies out of Credits' public ones.
type creditsReleaser Credits

// Release refunds a canceled charge.
func (c *creditsReleaser) Release(h algo.Handle, o algo.Outcome) {
	if o.Result() == algo.Canceled {
		c.Settle(h, 0)
	}
}

// Settle corrects the charge.
func (c *creditsReleaser) Settle(h algo.Handle, actual int64) {
	credits := (*Credits)(c)
	credits.add(credits.redisKey(h.Key), min(h.N, decide.MaxBalance)-min(actual, decide.MaxBalance))
}

// UndoCharge refunds a charge whose caller has stopped waiting.
func (c *creditsReleaser) UndoCharge(r *remote.Request) {
	if r.Err == nil && r.Answer(0).Flag() == flagAdmitted {
		(*Credits)(c).add(r.Keys[0], r.Args[1])
	}
}

// The operations of credits.lua.
const (
	opRead = iota
	opAdd
	opTopUp
	opSpend
)

type creditAnswer struct {
	balance, flag int64
	stated        int64 // by the receipt
}

// execute runs an operation, with a receipt unless receipt is empty.
func (c *Credits) execute(ctx context.Context, key, receipt string, a remote.Args) (got creditAnswer, err error) {
	if c.store.remote.Closed() {
		return got, ErrClosed
	}
	var r *remote.Request
	if receipt != "" {
		r = remote.NewPair(creditsScript, c.redisKey(key), receipt, a, remote.Args{})
	} else if r = remote.NewRequest(creditsScript, c.redisKey(key), a); a[0] == opSpend && a[1] > 0 {
		r.Undo = (*creditsReleaser)(c)
	}
	if err = c.store.execute(ctx, r, "credits", c.name); err != nil {
		return got, err
	}
	defer r.Free()
	got.balance, got.flag = r.Reply[0], r.Answer(0).Flag()
	if receipt != "" {
		got.stated = r.Answer(1).Reply[0]
	}
	return got, nil
}

// add changes the balance of redisKey by n units and does not wait.
func (c *Credits) add(redisKey string, n int64) {
	if n != 0 {
		c.store.remote.Send(remote.NewRequest(creditsScript, redisKey, remote.Args{opAdd, n}))
	}
}

func (c *Credits) redisKey(key string) string { return remote.Key(c.store.prefix, c.escaped, key) }

func (c *Credits) errorf(format string, args ...any) error {
	return fmt.Errorf("distributed: credits %q: "+format, append([]any{c.name}, args...)...)
}
