package distributed

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// blocks spares Redis on busy keys: it charges a block of units in advance and
// spends them in this process.
//
// What that can add to the bucket's own bound are the units that are charged
// and not yet spent, as they may be spent in a window that does not hold their
// charge: at most one block for each instance and key. So the size of a block
// is the excess that the user allows, divided by twice the number of
// instances, because as many again may have started since they were counted.
// An instance that crashes takes its block with it: that admits less.
//
// A block is taken only for a key that was asked for within the last second
// and whose bucket has room for a block of every instance, so near the limit
// decisions are exact. It may be spent for a second, then what is left goes
// back.
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

// block is what this instance holds of one key.
type block struct {
	of       *blocks
	key      string
	mu       sync.Mutex
	left     int64
	granted  int64
	start    int64 // when it was charged, on the server's clock
	emission int64
	ends     time.Time
	fetching bool // somebody is asking for the next one
	dead     bool // no longer in the shard

	heard time.Time // when Redis answered last, or the key was new
	last  algo.Decision
}

const (
	blockLifetime = time.Second
	mostBlocks    = 2048 // keys a shard keeps; beyond, decisions are exact
)

func newBlocks(l *Limiter) *blocks {
	b := &blocks{limiter: l, seed: maphash.MakeSeed()}
	for i := range b.shards {
		b.shards[i].keys = map[string]*block{}
	}
	return b
}

// block returns the block of key, nil if there are too many.
func (b *blocks) block(key string) *block {
	s := b.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[key]
	if k == nil && len(s.keys) < mostBlocks {
		k = &block{of: b, key: key, heard: time.Now()}
		s.keys[key] = k
		b.once.Do(func() { b.limiter.store.help(b.sweep) })
	}
	return k
}

func (b *blocks) shard(key string) *blockShard {
	return &b.shards[maphash.String(b.seed, key)%uint64(len(b.shards))]
}

// size is how many units a block may have now; 0 while the instances have not
// been counted.
func (b *blocks) size() int64 {
	in := b.limiter.store.registry.last.Load()
	switch {
	case in == nil:
		return 0
	case b.limiter.store.instances > 0:
		return b.limiter.store.blocks / int64(in.count)
	}
	return b.limiter.store.blocks / int64(2*in.count)
}

// spend takes n units from the block, if it has them.
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
	d.ResetAfter = max(k.last.ResetAfter-now.Sub(k.heard), 0)
	d.NextAfter = min(micros(k.emission), d.ResetAfter)
	*lease = algo.NewLease(d, (*blockReleaser)(k), algo.Handle{Key: k.key, N: n, At: k.start, State: [3]int64{k.emission}})
	return true
}

// want is how many units to charge beyond the n that are needed. Who gets more
// than 0 must call grant or failed.
func (k *block) want(g *gcra, n int64) int64 {
	size := k.of.size()
	k.mu.Lock()
	defer k.mu.Unlock()
	extra := size - k.left
	room := k.last.Remaining - n - size*int64(k.of.limiter.store.registry.known().count)
	if k.fetching || extra <= 0 || room < 0 || n+extra > g.most || time.Since(k.heard) >= blockLifetime {
		return 0
	}
	k.fetching = true
	return extra
}

// grant notes what Redis answered, and units that were charged in advance.
func (k *block) grant(e *entry, d *algo.Decision, extra int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last, k.heard = *d, time.Now()
	if extra == 0 {
		return
	}
	k.fetching = false
	if !d.Allowed {
		return
	}
	k.emission, k.start = e.limit.(*gcra).emission, e.now
	k.left += extra
	k.granted = k.left
	k.ends = e.sent.Add(blockLifetime)
	if k.dead {
		k.giveBack()
	}
}

// failed ends a want that had no answer.
func (k *block) failed(extra int64) {
	if extra > 0 {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.fetching = false
	}
}

// giveBack returns what is left to Redis. The caller holds k.mu.
func (k *block) giveBack() {
	if k.left == 0 {
		return
	}
	l := k.of.limiter
	l.credit(l.redisKey(k.key), bucketScript, args{opRefund, k.left * k.emission, k.granted * k.emission, k.start})
	k.left = 0
}

// sweep returns what has not been spent in time, and forgets idle keys.
func (b *blocks) sweep() {
	for b.limiter.store.sleep(blockLifetime / 4) {
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
				k.giveBack()
			}
			if k.left == 0 && !k.fetching && now.Sub(k.heard) > 2*blockLifetime {
				k.dead = true
				delete(s.keys, key)
			}
			k.mu.Unlock()
		}
		s.mu.Unlock()
	}
}

// close returns everything.
func (b *blocks) close() { b.collect(time.Now().Add(time.Hour)) }

// drop forgets the block of a key that has been reset or blocked: what it had
// charged means nothing any more.
func (b *blocks) drop(key string) {
	s := b.shard(key)
	s.mu.Lock()
	k := s.keys[key]
	s.mu.Unlock()
	if k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.left, k.heard = 0, time.Time{}
	}
}

// blockReleaser is the block's side of the leases that were spent from it.
type blockReleaser block

func (r *blockReleaser) Release(h algo.Handle, o algo.Outcome) {
	if o == algo.Canceled {
		r.Settle(h, 0)
	}
}

// Settle puts units back into the block that they came from, or into the
// bucket if that block is spent and gone; and charges what was too little.
func (r *blockReleaser) Settle(h algo.Handle, actual int64) {
	k := (*block)(r)
	l := k.of.limiter
	more := actual - h.N
	k.mu.Lock()
	defer k.mu.Unlock()
	current := k.start == h.At && time.Now().Before(k.ends)
	switch {
	case current && more < 0 && k.left-more <= k.granted:
		k.left -= more
	case current && more > 0 && more <= k.left:
		k.left -= more
	case more < 0:
		l.credit(l.redisKey(h.Key), bucketScript, args{opRefund, -more * h.State[0], h.N * h.State[0], h.At})
	default:
		l.credit(l.redisKey(h.Key), bucketScript, l.load().owe(h, more))
	}
}

// spend takes n > 0 units from the block of key, if there is one with so many.
func (b *blocks) spend(lease *algo.Lease, key string, n int64) bool {
	s := b.shard(key)
	s.mu.Lock()
	k := s.keys[key]
	s.mu.Unlock()
	return k != nil && n > 0 && k.spend(lease, n)
}

// takes returns the block that a call may fill, nil if it must stay exact.
func (b *blocks) takes(c call) *block {
	if g, bucket := c.limit.(*gcra); !bucket || g.wait > 0 || c.n == 0 || c.n > g.most {
		return nil
	}
	return b.block(c.key)
}

// acquire asks Redis, for a block too if the time has come; false if there was
// no answer.
func (k *block) acquire(c call, lease *algo.Lease) bool {
	l := k.of.limiter
	extra := k.want(c.limit.(*gcra), c.n)
	e := l.ask(c, extra)
	if e == nil {
		k.failed(extra)
		return false
	}
	defer e.free()
	l.answer(lease, e, c)
	k.grant(e, &lease.Decision, extra)
	if extra > 0 && !lease.Allowed { // the block did not fit, n alone may
		return l.remote(c, lease)
	}
	lease.Remaining = min(lease.Remaining+extra, lease.Limit)
	return true
}
