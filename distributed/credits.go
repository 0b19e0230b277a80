package distributed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/remote"
)

// Credits is a prepaid balance for each key, in Redis, which [Store.First] spends when a
// plan is used up; see [algo.Credits].
//
// Bound: the charges of a key, minus its refunds, are at most the sum of its top-ups, as
// long as Redis keeps its data: a lost balance is 0, and a lost charge can be spent again.
// Without Redis nothing is spent.
//
// A balance does not expire. Its key holds the ids of the top-ups of the last 30 days too, about
// 40 bytes each, and goes with the last of them when the balance is 0. Redis must not evict it: use
// a policy that evicts only keys that expire. Do not use it as a ledger.
type Credits struct {
	store   *Store
	name    string
	escaped string
}

// Credits makes balances of the given name, 1 to 200 bytes, which no limit of the store
// may have. Instances that use the same name share them.
func (s *Store) Credits(name string) (*Credits, error) {
	if name == "" || len(name) > remote.MaxTag {
		return nil, fmt.Errorf("distributed: credits: name %q has %d bytes, want 1 to %d", name, len(name), remote.MaxTag)
	}
	return &Credits{s, name, remote.Escape(name)}, nil
}

// receiptLife is how long a top-up is known by its id.
const receiptLife = 30 * 24 * time.Hour

// ErrTopUpExists reports that a top-up of the same key and id was made before, of another
// amount, and stays so.
var ErrTopUpExists = errors.New("distributed: the id has topped up another amount")

// TopUp adds n units to the balance of key, once for each key and id of 1 byte or more: a
// top-up that is repeated within 30 days, because its reply was lost, changes nothing. The
// error is [ErrUnavailable], in which case it may have been made: repeat it with the same id;
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

// The operations of creditsops.lua.
const (
	opAdd   = 1
	opTopUp = 2
)

type creditAnswer struct {
	balance, flag int64
	stated        int64 // by the receipt
}

// execute runs an operation, which has a receipt unless that is empty.
func (c *Credits) execute(ctx context.Context, key, receipt string, a remote.Args) (got creditAnswer, err error) {
	if c.store.remote.Closed() {
		return got, ErrClosed
	}
	r := remote.NewRequest(creditsScript, c.redisKey(key), a)
	if receipt != "" {
		r.Keys = []string{c.redisKey(key), receipt}
		r.Args = append(r.Args, 0, 0, 0)
		r.Reply = make([]int64, 2*creditsScript.Replies)
	}
	if !c.store.remote.Do(ctx, r) {
		return got, noReply(ctx, "credits", c.name)
	}
	defer r.Free()
	switch {
	case r.Err != nil:
		return got, fmt.Errorf("%w: credits %q: %w", ErrUnavailable, c.name, r.Err)
	case r.Answer(0).Flag() == flagWrongType:
		return got, c.errorf("%w", errWrongType)
	}
	got.balance, got.flag = r.Reply[0], r.Answer(0).Flag()
	if receipt != "" {
		got.stated = r.Answer(1).Reply[0]
	}
	return got, nil
}

// add changes the balance of key by n units, and does not wait.
func (c *Credits) add(key string, n int64) {
	if n != 0 {
		c.store.remote.Send(remote.NewRequest(creditsScript, c.redisKey(key), remote.Args{opAdd, n}))
	}
}

func (c *Credits) redisKey(key string) string { return remote.Key(c.store.prefix, c.escaped, key) }

func (c *Credits) errorf(format string, args ...any) error {
	return fmt.Errorf("distributed: credits %q: "+format, append([]any{c.name}, args...)...)
}
