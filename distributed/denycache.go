package distributed

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// denyCache denies keys of buckets and windows that Redis has just denied. It is exact:
// the spent units of a key fall only by a refund, a reset, a raised limit or the passing of
// time, so a denial of any cost proves the denials of that cost until its RetryAfter. It
// counts that time from when the request was sent, so an admission can be too late but
// never too early.
//
// A refund, reset, charge or change in this process drops the proof. One in another process,
// or a step of the server's clock, takes effect when the proof expires, after a second: until
// then refunded units stay denied, and RetryAfter does not include later charges.
type denyCache struct {
	seed     maphash.Seed
	shards   [16]denyShard
	capacity int // of each shard; 0: off
}

type denyShard struct {
	corrected atomic.Uint64 // counts refunds, resets and bans of its keys

	mu     sync.Mutex
	proofs map[string]*proof // by Redis key
}

// proof holds the reply of a denial. It is immutable.
type proof struct {
	limit    limit // the parameters in force; nil for a ban
	now      int64 // the server's time
	until    int64 // the end of a ban
	args     remote.Args
	reply    [remote.MaxReplies]int64
	sent     time.Time
	received time.Time
}

// answer returns the reply as it would be at now.
func (p *proof) answer(now int64) remote.Answer {
	s := p.limit.script()
	return remote.Answer{Now: now, Args: p.args[:s.Args], Reply: p.reply[:s.Replies]}
}

const proofLifetime = time.Second

func newDenyCache(n int) *denyCache {
	c := &denyCache{seed: maphash.MakeSeed(), capacity: (n + 15) / 16}
	for i := range c.shards {
		c.shards[i].proofs = map[string]*proof{}
	}
	return c
}

func (c *denyCache) shard(key string) *denyShard {
	return &c.shards[maphash.String(c.seed, key)%uint64(len(c.shards))]
}

func (s *denyShard) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.proofs)
}

// denies writes a denial to d, and reports true, if the denial of n > 0 units is proven.
func (c *denyCache) denies(d *algo.Decision, lim limit, key string, n int64) bool {
	if c.capacity == 0 || n == 0 {
		return false
	}
	p := c.find(key)
	if p == nil || p.limit != lim || n > lim.maxCost() {
		return false
	}
	latest, earliest := p.serverTime(time.Now())
	was, _ := lim.explain(p.answer(p.now), n)
	if was.Allowed || latest >= p.now+was.RetryAfter.Microseconds() {
		return false
	}
	// RetryAfter counts from the earliest time the server can have, so that it suffices.
	*d, _ = lim.explain(p.answer(earliest), n)
	d.Source = algo.SourceDenyCache
	return !d.Allowed
}

func (c *denyCache) find(key string) *proof {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.proofs[key]
	if p != nil && time.Since(p.received) >= proofLifetime {
		delete(s.proofs, key)
		return nil
	}
	return p
}

// banned returns the known rest of the ban in record. fresh is false after a second: the
// cache keeps a ban until it ends, for the decisions without Redis.
func (c *denyCache) banned(record string) (left time.Duration, fresh bool) {
	s := c.shard(record)
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.proofs[record]
	if !ok {
		return 0, false
	}
	latest, earliest := p.serverTime(time.Now())
	if p.until <= latest {
		delete(s.proofs, record)
		return 0, false
	}
	return micros(p.until - earliest), time.Since(p.received) < proofLifetime
}

// noteBan stores a ban under the key of its record; corrections as in put.
func (c *denyCache) noteBan(record string, r *remote.Request, corrections uint64) {
	c.put(record, &proof{until: r.Answer(1).Reply[0], now: r.Now, sent: r.Sent, received: time.Now()}, corrections)
}

// serverTime bounds the server's time at now, for clocks that drift apart by at most
// one part in a thousand.
func (p *proof) serverTime(now time.Time) (latest, earliest int64) {
	longest, shortest := now.Sub(p.sent).Microseconds(), now.Sub(p.received).Microseconds()
	return p.now + longest + longest/1000 + 1, p.now + max(shortest-shortest/1000-1, 0)
}

// corrections counts the corrections in the shard of key. A denial proves nothing after a
// correction that is later than its request.
func (c *denyCache) corrections(key string) uint64 { return c.shard(key).corrected.Load() }

// note stores the proof of a denial: a answers a request that left at sent; corrections as in put.
func (c *denyCache) note(key string, lim limit, a remote.Answer, sent time.Time, d *algo.Decision, corrections uint64) {
	_, ok := lim.(prover)
	if !ok || a.Mixed() || c.capacity == 0 || d.Reason != algo.Quota && d.Reason != algo.Banned {
		return
	}
	p := &proof{limit: lim, now: a.Now, sent: sent, received: time.Now()}
	copy(p.args[:], a.Args)
	copy(p.reply[:], a.Reply)
	c.put(key, p, corrections)
}

// put stores p, unless the shard has counted more than corrections since.
func (c *denyCache) put(key string, p *proof, corrections uint64) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.capacity == 0 || s.corrected.Load() != corrections {
		return
	}
	makeRoom(s.proofs, key, c.capacity)
	s.proofs[key] = p
}

// makeRoom removes an arbitrary entry if m, of at most most entries, has no room for key.
func makeRoom[V any](m map[string]V, key string, most int) {
	if _, known := m[key]; known || len(m) < most {
		return
	}
	for victim := range m {
		delete(m, victim)
		return
	}
}

// drop removes the proof about a corrected key, and voids one whose reply is on its way.
func (c *denyCache) drop(key string) {
	c.shard(key).corrected.Add(1)
	c.outdate(key)
}

// outdate removes the proof about a charged key, because its RetryAfter is now too short.
func (c *denyCache) outdate(key string) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.proofs, key)
}
