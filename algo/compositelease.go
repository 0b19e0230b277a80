package algo

import (
	"context"
	"slices"
	"sync"
)

// compositeLease is the limiter's side of the lease of a composition. It is
// used again after the lease is released; the generation in the handle keeps
// copies of the released lease from reaching its next use.
type compositeLease struct {
	generation int64
	held       int // of leases, while they are charged
	requests   int
	leases     []Lease // one for each part, in order
	owners     []int   // the request of each part; empty: each part is a request
	inline     [inlineParts]Lease
}

var compositeLeases = sync.Pool{New: func() any {
	c := new(compositeLease)
	c.leases = c.inline[:0]
	return c
}}

// mixedCost is the cost of a composite lease. Settle never gets it as an
// argument, because each part has a cost of its own.
const mixedCost = -1

// acquireParts charges the parts of reqs and returns the answer. Unless all are
// admitted, nothing stays charged.
func acquireParts(ctx context.Context, lease *Lease, reqs, parts []Request, owners []int) error {
	c := compositeLeases.Get().(*compositeLease)
	c.requests, c.owners = len(reqs), append(c.owners[:0], owners...)
	c.leases = slices.Grow(c.leases[:0], len(parts))[:len(parts)]
	if failed, err := c.charge(ctx, parts); err != nil {
		if len(owners) > 0 {
			failed = owners[failed]
		}
		return requestError(reqs, failed, err)
	}
	combine(&lease.Decision, c.leases)
	lease.releaser, lease.handle.N, lease.handle.At = c, mixedCost, c.generation
	return nil
}

// charge acquires parts in order. If one denies, all charges are given back and
// the other parts are peeked. After an error, which it returns with the index
// of the failed part, and after a panic nothing stays charged.
func (c *compositeLease) charge(ctx context.Context, parts []Request) (from int, err error) {
	defer c.giveBack()
	for end := 0; from < len(parts); from = end {
		if end = runEnd(parts, from); end == from+1 {
			c.leases[from], err = parts[from].Limiter.Acquire(ctx, parts[from].Key, parts[from].N)
		} else {
			err = acquireBatch(ctx, parts[from:end], c.leases[from:end])
		}
		if err != nil {
			return from, err
		}
		c.held = end
		if !allAllowed(c.leases[from:end]) {
			c.giveBack()
			c.peekOthers(ctx, parts, from, end)
			return 0, nil
		}
	}
	c.held = 0
	return 0, nil
}

// giveBack cancels the charges that are held.
func (c *compositeLease) giveBack() {
	if held := c.held; held > 0 {
		c.held = 0
		releaseAll(c.leases[:held], Canceled)
	}
}

// Release implements [Releaser].
func (c *compositeLease) Release(h Handle, o Outcome) {
	if h.At == c.generation {
		c.generation++
		releaseAll(c.leases, o)
		compositeLeases.Put(c)
	}
}

// Settle implements [Releaser].
func (c *compositeLease) Settle(h Handle, actual int64) {
	for i := 0; i < len(c.leases) && h.At == c.generation; i++ {
		c.leases[i].Settle(actual)
	}
}

// releaseAll releases leases from the last to the first, the remaining ones
// too when one of them panics.
func releaseAll(leases []Lease, o Outcome) {
	left := len(leases)
	defer func() {
		if left > 0 { // a Release panicked
			releaseAll(leases[:left], o)
		}
	}()
	for left > 0 {
		left--
		leases[left].Release(o)
	}
}

// Parts returns the decision of each limit, in the order in which the limits
// were given: for [AcquireAll] one for each Request, for [All] one for each of
// its limits. It is nil for the lease of a single limit, and after Release.
//
// When the composition denied, nothing is charged, and Allowed reports for each
// limit whether it would have admitted. A limit that could not be peeked,
// because its backend failed, has the zero Decision. Each call returns a new
// slice.
func (l *Lease) Parts() []Decision {
	c, ok := l.releaser.(*compositeLease)
	if !ok || c.generation != l.handle.At {
		return nil
	}
	ds := make([]Decision, c.requests)
	for i, from := 0, 0; i < len(ds); i++ {
		end := from + 1
		for end < len(c.owners) && c.owners[end] == i {
			end++
		}
		combine(&ds[i], c.leases[from:end])
		from = end
	}
	return ds
}
