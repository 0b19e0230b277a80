package algo

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/sluice-go/sluice/internal/keystore"
	"github.com/sluice-go/sluice/internal/warning"
)

// compositeLease is the limiter's side of the lease of a composition. It is reused after the
// lease's release; the generation in the handle keeps copies of the released lease away from the
// next use.
type compositeLease struct {
	generation int64
	held       int // leases that are charged, during charge
	requests   int
	leases     []Lease   // one for each part, in order
	owners     []int     // the request of each part; empty: each part is a request
	asked      []Request // of All, and behind choices
	mixed      bool      // the requests have different costs
	now        keystore.Reading
	inline     [inlineParts]Lease
}

var compositeLeases = sync.Pool{New: func() any {
	c := new(compositeLease)
	c.leases = c.inline[:0]
	return c
}}

var warnMixed = &warning.Once{Line: warning.Line{
	Code:    "algo.settle_mixed",
	Message: "algo: Settle changed nothing, because the lease is of limits in different units",
	Do:      "settle each by itself with Lease.Part",
}}

func newCompositeLease(mixed bool) *compositeLease {
	c := compositeLeases.Get().(*compositeLease)
	c.mixed, c.owners, c.asked, c.now = mixed, c.owners[:0], c.asked[:0], keystore.Reading{}
	return c
}

// acquire charges reqs and writes the answer to lease. Unless all are admitted, nothing stays charged.
// direct: each limiter decides for itself.
func (c *compositeLease) acquire(ctx context.Context, lease *Lease, reqs []Request, direct bool) (err error) {
	parts := reqs
	if !direct {
		from := len(c.asked)
		for i := range reqs {
			if c.asked, err = flatten(ctx, c.asked, reqs[i]); err != nil {
				return requestError(reqs, i, err)
			}
			for len(c.owners) < len(c.asked)-from {
				c.owners = append(c.owners, i)
			}
		}
		parts = c.asked[from:]
	}
	c.requests = len(reqs)
	c.leases = slices.Grow(c.leases[:0], len(parts))[:len(parts)]
	if failed, err := c.charge(ctx, parts); err != nil {
		if len(c.owners) > 0 {
			failed = c.owners[failed]
		}
		return requestError(reqs, failed, err)
	}
	combine(&lease.Decision, c.leases)
	lease.releaser, lease.handle.N, lease.handle.At = c, mixedCost, c.generation
	return nil
}

// charge acquires parts in order. If one denies, it refunds all charges and peeks the other parts.
// An error is returned with the index of the failed part, unless another part denies. After an
// error or a panic nothing stays charged.
func (c *compositeLease) charge(ctx context.Context, parts []Request) (from int, err error) {
	defer c.giveBack()
	for end := 0; from < len(parts); from = end {
		if end, err = c.acquireRun(ctx, parts, from); err != nil {
			if ctx.Err() == nil && c.denyBeside(ctx, parts, from, end) {
				break
			}
			return from, err
		}
		c.held = end
		if !allAllowed(c.leases[from:end]) {
			c.giveBack()
			c.peekOthers(ctx, parts, from, end)
			break
		}
	}
	c.held = 0
	return 0, nil
}

// acquireRun acquires the parts in [from, end), which one step decides.
func (c *compositeLease) acquireRun(ctx context.Context, parts []Request, from int) (end int, err error) {
	p, lease := &parts[from], &c.leases[from]
	if l, ok := p.Limiter.(*RateLimiter); ok {
		*lease = Lease{}
		return from + 1, l.acquireAt(lease, &c.now, p.Key, p.N)
	}
	c.now = keystore.Reading{} // this limiter may wait
	if end = runEnd(parts, from); end > from+1 {
		return end, acquireBatch(ctx, parts[from:end], c.leases[from:end])
	}
	*lease, err = p.Limiter.Acquire(ctx, p.Key, p.N)
	return end, err
}

// giveBack refunds the charges so far.
func (c *compositeLease) giveBack() {
	if held := c.held; held > 0 {
		c.held = 0
		releaseAll(c.leases[:held], Canceled)
	}
}

// part returns the number, from 1, of the part of a composite lease that h belongs to; 0: the whole
// lease.
func (h *Handle) part() int { return int(h.State[0]) }

// Release implements [Releaser]. A single part is released with the others.
func (c *compositeLease) Release(h Handle, o Outcome) {
	if h.At == c.generation && h.part() == 0 {
		c.generation++
		releaseAll(c.leases, o)
		compositeLeases.Put(c)
	}
}

// Settle implements [Releaser].
func (c *compositeLease) Settle(h Handle, actual int64) {
	if h.At != c.generation {
		return
	}
	leases, mixed := c.leases, c.mixed
	if i := h.part(); i > 0 {
		from, end := c.part(i - 1)
		leases, mixed = leases[from:end], false
	}
	if mixed || !settles(leases) {
		warnMixed.Log()
		return
	}
	for i := range leases {
		leases[i].Settle(actual)
	}
}

// settles reports whether all leases, at any depth, count the same unit, so that one amount settles
// them.
func settles(leases []Lease) bool {
	charged, slots := 0, false
	for i := range leases {
		l := &leases[i]
		if l.releaser == nil {
			continue
		}
		charged++
		if c, ok := l.releaser.(*compositeLease); ok && c.generation == l.handle.At {
			if c.mixed || !settles(c.leases) {
				return false
			}
			slots = slots || slices.ContainsFunc(c.leases, needsRelease)
		}
		slots = slots || needsRelease(*l)
	}
	return charged < 2 || !slots
}

// needsRelease reports whether l holds slots.
func needsRelease(l Lease) bool {
	d, ok := l.releaser.(Describer)
	return ok && d.About().NeedsRelease
}

// part returns the range of the leases of a request.
func (c *compositeLease) part(request int) (from, end int) {
	if len(c.owners) == 0 {
		return request, request + 1
	}
	from, found := slices.BinarySearch(c.owners, request)
	if !found {
		return from, from
	}
	end, _ = slices.BinarySearch(c.owners, request+1)
	return from, end
}

// releaseAll releases leases from the last to the first, all of them even if one panics.
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

// Parts returns each limit's decision in the order of the limits: one for each Request of
// [AcquireAll] or limit of [All]. It is nil for the lease of a single limit, and after Release.
//
// After a denial nothing is charged, and each Allowed reports whether that limit would have
// admitted. A limit whose backend failed during a peek has the zero Decision. Each call returns a
// new slice.
func (l *Lease) Parts() []Decision {
	c, ok := l.releaser.(*compositeLease)
	if !ok || c.generation != l.handle.At {
		return nil
	}
	ds := make([]Decision, c.requests)
	for i := range ds {
		from, end := c.part(i)
		combine(&ds[i], c.leases[from:end])
	}
	return ds
}

// Part returns the lease of the limit with index i in [Lease.Parts], to settle it alone:
//
//	lease, err := algo.AcquireAll(ctx,
//		algo.Request{Limiter: requests, Key: user, N: 1},
//		algo.Request{Limiter: tokens, Key: user, N: estimate})
//	...
//	lease.Part(1).Settle(used)
//
// The part is released with the lease, and its own Release does nothing. The lease of a single limit is
// its own part 0. For any other index and after Release the result is a zero Lease, never nil.
func (l *Lease) Part(i int) *Lease { return l.part(new(Lease), i) } // inlined, so that a caller may keep the Lease on the stack

// part fills in part, or returns l if that is its own part.
func (l *Lease) part(part *Lease, i int) *Lease {
	c, ok := l.releaser.(*compositeLease)
	switch {
	case !ok && i == 0:
		return l
	case ok && c.generation == l.handle.At && i >= 0 && i < c.requests:
		part.releaser, part.handle = c, Handle{N: mixedCost, At: c.generation, State: [3]int64{int64(i) + 1}}
		from, end := c.part(i)
		combine(&part.Decision, c.leases[from:end])
	}
	return part
}

// requestError names the request that failed, but not the key, which may be secret.
func requestError(reqs []Request, failed int, err error) error {
	return fmt.Errorf("algo: request %d of %d (%T): %w", failed+1, len(reqs), reqs[failed].Limiter, err)
}

// inlineParts is the number of limits without an allocation of their own.
const inlineParts = 4

// Charge returns the charged key and units, for limiters that continue the charge of a lease; of
// several limits the first charged one. ok is false if there is nothing to settle: on a denied,
// unlimited or zero lease, and after Release.
func (l *Lease) Charge() (key string, n int64, ok bool) {
	c, several := l.releaser.(*compositeLease)
	switch {
	case l.releaser == nil || several && c.generation != l.handle.At:
		return "", 0, false
	case !several:
		return l.handle.Key, l.handle.N, true
	}
	from, end := 0, len(c.leases)
	if i := l.handle.part(); i > 0 {
		from, end = c.part(i - 1)
	}
	for ; from < end && !ok; from++ {
		key, n, ok = c.leases[from].Charge()
	}
	return key, n, ok
}
