package distributed

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// denyCache answers for keys of buckets and windows that Redis has just denied. It is exact:
// the spent units of a key fall only by a refund, a reset, a raised limit or the passing of
// time, so a denial proves every denial of a cost until its RetryAfter, for any cost. The
// time at which the request was sent is an upper bound of the server's time, so an answer
// can be too late but never too early.
//
// A refund, reset, charge or change in this process drops the proof. One in another process,
// and a step of the server's clock, take effect when the proof expires, after a second: until
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

// proof is the content of a denial. It does not change.
type proof struct {
	limit    limit // the parameters in force; nil for a ban
	now      int64 // the server's time
	until    int64 // the end of a ban
	args     remote.Args
	reply    [remote.MaxReplies]int64
	sent     time.Time
	received time.Time
}

// answer is the reply as it would be at now.
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

// denies writes the denial of n > 0 units, if it is proven.
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
	// RetryAfter counts from the earliest time that the server can have, so that
	// it suffices.
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

// banned returns how long the key of a record is banned, as far as it is known, and
// whether that is fresh: a ban is kept until it ends, for the decisions without Redis.
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

// noteBan keeps a ban, under the key of its record, after so many corrections.
func (c *denyCache) noteBan(record string, r *remote.Request, corrections uint64) {
	c.put(record, &proof{until: r.Answer(1).Reply[0], now: r.Now, sent: r.Sent, received: time.Now()}, corrections)
}

// serverTime bounds the server's time at now. The two clocks may drift apart by
// one part in a thousand.
func (p *proof) serverTime(now time.Time) (latest, earliest int64) {
	longest, shortest := now.Sub(p.sent).Microseconds(), now.Sub(p.received).Microseconds()
	return p.now + longest + longest/1000 + 1, p.now + max(shortest-shortest/1000-1, 0)
}

// corrections counts the corrections of key. A denial proves nothing if one came after its
// request was made.
func (c *denyCache) corrections(key string) uint64 { return c.shard(key).corrected.Load() }

// note keeps the proof of a denial by the reply a to a request that left at sent, after so many
// corrections.
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

// put keeps a proof, unless a correction came since there were so many.
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

// makeRoom removes any one entry if m, of at most so many, has no room for key.
func makeRoom[V any](m map[string]V, key string, most int) {
	if _, known := m[key]; known || len(m) < most {
		return
	}
	for victim := range m {
		delete(m, victim)
		return
	}
}

// drop removes the proof about a key that was corrected, also one whose reply is on its way.
func (c *denyCache) drop(key string) {
	c.shard(key).corrected.Add(1)
	c.outdate(key)
}

// outdate removes the proof about a key that was charged, whose RetryAfter is now too short.
func (c *denyCache) outdate(key string) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.proofs, key)
}
