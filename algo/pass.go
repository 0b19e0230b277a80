package algo

import (
	"context"
	"time"
)

// pass is one decision on its way through several limits. It reads the clock
// once and hands the reading down: the clock is most of what a decision costs.
type pass struct {
	ctx context.Context
	at  time.Time // zero: not read yet
}

// part is implemented by the limiters of this package: inside a composition
// they take the reading of the clock from it, and they can tell what a charge
// would get without charging. Both write in place; the lease is the zero Lease
// and the decision the zero Decision.
type part interface {
	acquireIn(p *pass, lease *Lease, key string, n int64)
	askIn(p *pass, d *Decision, key string, n int64)
}

// wrapper is the same for limiters over limiters, which may fail.
type wrapper interface {
	acquireIn(p *pass, lease *Lease, key string, n int64) error
	askIn(p *pass, d *Decision, key string, n int64) error
}

// now is the pass's instant as c counts. A limiter may find that a word is
// ahead of it and read its own clock; being late only ever under-admits.
func (p *pass) now(c clock) int64 {
	if p.at.IsZero() {
		p.at = c.time()
	}
	return c.at(p.at)
}

// elapse forgets the reading, after something that may have taken long.
func (p *pass) elapse() { p.at = time.Time{} }

// charge acquires a run of leaves that is decided in one step. A run of several
// is the batch of one backend, see batchEnd.
func (p *pass) charge(run []leaf, leases []Lease) error {
	if len(run) == 1 {
		return p.step(run[0].Limiter, &leases[0], run[0].Key, run[0].N)
	}
	p.elapse()
	return run[0].Limiter.(Batcher).AcquireBatch(p.ctx, requests(run), leases)
}

// acquire charges whatever wrappers hold.
func (p *pass) acquire(l Limiter, lease *Lease, key string, n int64) (err error) {
	if l, err = resolve(p.ctx, l, key); err != nil {
		return err
	}
	return p.step(l, lease, key, n)
}

// step charges a limiter that is no chooser.
func (p *pass) step(l Limiter, lease *Lease, key string, n int64) (err error) {
	switch l := l.(type) {
	case part:
		l.acquireIn(p, lease, key, n)
		return nil
	case wrapper:
		return l.acquireIn(p, lease, key, n)
	}
	p.elapse()
	*lease, err = l.Acquire(p.ctx, key, n)
	return err
}
