package distributed

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// blocks saves round trips for busy keys: it charges a block of units in advance
// and spends them in this process. A nil pointer has no blocks.
//
// Units that are charged but not yet spent may be spent in a window without their
// charge. They are the excess over the bucket's own bound: at most one block for
// each instance and key. So the size of a block is the excess that the user allows,
// divided by twice the number of instances, because as many again may have started
// since they were counted. An instance that crashes loses its block, which admits less.
//
// blocks takes a block only for a key that was used within the last second and
// whose bucket has room for a block of every instance, so decisions near the limit
// are exact. A block lives for a second; then the rest is refunded.
type blocks struct {
	limiter *Limiter
	seed    maphash.Seed
	shards  [32]blockShard
	once    sync.Once
}

type blockShard struct {
	mu   sync.Mutex
	keys map[string]*block
}

// block holds this instance's prepaid units of one key.
type block struct {
	of       *blocks
	key      string
	mu       sync.Mutex
	left     int64
	charge   algo.Handle // N: the units of the block when it was last filled
	ends     time.Time
	fetching bool // a caller is asking for the next block
	removed  bool // no longer in the shard

	answered time.Time // when Redis last answered, or the key was new
	last     algo.Decision
}

const (
	blockLifetime = time.Second
	maxBlocks     = 2048 // keys of a shard; beyond, decisions are exact
)

func newBlocks(l *Limiter) *blocks {
	if l.store.blocks == 0 {
		return nil
	}
	b := &blocks{limiter: l, seed: maphash.MakeSeed()}
	for i := range b.shards {
		b.shards[i].keys = map[string]*block{}
	}
	return b
}

func (b *blocks) shard(key string) *blockShard {
	return &b.shards[maphash.String(b.seed, key)%uint64(len(b.shards))]
}

func (b *blocks) find(key string) *block {
	s := b.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[key]
}

// spend takes n > 0 units from the block of key, if it has that many.
func (b *blocks) spend(lease *algo.Lease, key string, n int64) bool {
	if b == nil || n == 0 {
		return false
	}
	k := b.find(key)
	return k != nil && k.spend(lease, n)
}

// fillable returns the block that c may fill; nil if c must stay exact.
func (b *blocks) fillable(c call) *block {
	if b == nil || c.charge(0) == 0 {
		return nil
	}
	if g, ok := c.limit.(*bucket); !ok || g.MaxWait > 0 || c.n > g.MaxCost {
		return nil
	}
	s := b.shard(c.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[c.key]
	if k == nil && len(s.keys) < maxBlocks {
		k = &block{of: b, key: c.key, answered: time.Now(), removed: b.limiter.isClosed()}
		s.keys[c.key] = k
		b.once.Do(func() { b.limiter.store.remote.Background(b.sweep) })
	}
	return k
}

// size returns how many units a block may have now; 0 while the count may lack an
// instance that has blocks.
func (b *blocks) size() int64 {
	in := b.limiter.store.registry.counted.Load()
	switch {
	case in == nil || !b.limiter.store.registry.exact():
		return 0
	case b.limiter.store.instances > 0:
		return b.limiter.store.blocks / int64(in.count)
	}
	return b.limiter.store.blocks / int64(2*in.count)
}

// spend takes n units from the block, if it has that many.
func (k *block) spend(lease *algo.Lease, n int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left < n {
		return false
	}
	now := time.Now()
	if !now.Before(k.ends) {
		return false
	}
	k.left -= n
	d := algo.Decision{Allowed: true, Source: algo.SourceBlock, Limit: k.last.Limit}
	d.Remaining = min(k.last.Remaining+k.left, d.Limit)
	d.ResetAfter = max(k.last.ResetAfter-now.Sub(k.answered), 0)
	d.NextAfter = min(micros(k.charge.State[1]), d.ResetAfter)
	h := k.charge
	h.N = n
	*lease = algo.NewLease(d, (*blockReleaser)(k), h)
	return true
}

// acquire asks Redis for c, and for a new block if one is due. It reports false if
// there is no answer.
func (k *block) acquire(c call, lease *algo.Lease) bool {
	l := k.of.limiter
	extra := k.want(c.limit.(*bucket), c.n)
	if extra > 0 {
		defer l.store.fetches.Done()
	}
	r := l.ask(c, extra)
	if r == nil {
		k.failed(extra)
		return false
	}
	defer r.Free()
	charge := l.fillLease(lease, r, c)
	k.fill(r, charge, &lease.Decision, extra)
	if extra > 0 && !lease.Allowed { // the block did not fit; n alone may
		exact := l.ask(c, 0)
		if exact == nil {
			return false
		}
		defer exact.Free()
		l.fillLease(lease, exact, c)
		return true
	}
	lease.Remaining = min(lease.Remaining+extra, lease.Limit)
	return true
}

// want returns how many units to charge in addition to n. After a result above 0
// the caller must call fill or failed.
func (k *block) want(g *bucket, n int64) int64 {
	size := k.of.size()
	k.mu.Lock()
	defer k.mu.Unlock()
	extra := size - k.left
	room := k.last.Remaining - n - size*int64(k.of.limiter.store.registry.known().count)
	if k.fetching || k.removed || extra <= 0 || room < 0 || n+extra > g.MaxCost || time.Since(k.answered) >= blockLifetime {
		return 0
	}
	k.fetching = true
	k.of.limiter.store.fetches.Add(1)
	return extra
}

// fill records an answer and the extra units that were charged.
func (k *block) fill(r *remote.Request, charge algo.Handle, d *algo.Decision, extra int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last, k.answered = *d, time.Now()
	k.fetching = k.fetching && extra == 0
	if extra == 0 || !d.Allowed {
		return
	}
	k.left += extra
	k.charge = charge
	k.charge.Key, k.charge.N = k.key, k.left
	k.ends = r.Sent.Add(blockLifetime)
	if k.removed {
		k.returnRest()
	}
}

// failed ends a want without an answer. It does nothing on a nil pointer.
func (k *block) failed(extra int64) {
	if extra > 0 {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.fetching = false
	}
}

// returnRest refunds the unspent units. The caller holds k.mu.
func (k *block) returnRest() {
	if k.left > 0 {
		(*releaser)(k.of.limiter).correctTo(k.charge, k.charge.N-k.left)
		k.left = 0
	}
}

// sweep refunds the blocks that were not spent in time, and removes idle keys.
func (b *blocks) sweep() {
	for !b.limiter.closed.Load() && b.limiter.store.remote.Sleep(blockLifetime/4) {
		b.collect(time.Now())
	}
}

func (b *blocks) collect(now time.Time) {
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		for key, k := range s.keys {
			k.mu.Lock()
			if !now.Before(k.ends) {
				k.returnRest()
			}
			if k.left == 0 && !k.fetching && now.Sub(k.answered) > 2*blockLifetime {
				k.removed = true
				delete(s.keys, key)
			}
			k.mu.Unlock()
		}
		s.mu.Unlock()
	}
}

// close refunds all blocks, and those on their way when they arrive.
func (b *blocks) close() {
	if b == nil {
		return
	}
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		for _, k := range s.keys {
			k.mu.Lock()
			k.returnRest()
			k.removed = true
			k.mu.Unlock()
		}
		clear(s.keys)
		s.mu.Unlock()
	}
}

// drop removes the block of a key that has been reset or banned, because its
// charge no longer counts.
func (b *blocks) drop(key string) {
	if b == nil {
		return
	}
	if k := b.find(key); k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.left, k.answered = 0, time.Time{}
	}
}
