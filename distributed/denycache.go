package distributed

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// denyCache answers for buckets that Redis has just denied. It is exact: a TAT
// falls only by a refund, a reset or a raised limit, so a denial proves every
// later denial until the TAT is near enough, for any cost. The server's time is
// bounded from above by the time at which the request was sent, so an answer can
// be too late but never too early.
//
// A refund, reset or change in this process drops the proof. One in another
// process takes effect when the proof expires, after a second.
type denyCache struct {
	seed     maphash.Seed
	shards   [16]denyShard
	capacity int // of each shard; 0: off
}

type denyShard struct {
	mu     sync.Mutex
	proofs map[string]proof // by Redis key
}

// proof is the content of a denial.
type proof struct {
	limit    limit // the parameters in force
	now      int64 // the server's time
	tat      int64 // or the end of the ban
	banned   bool
	sent     time.Time
	received time.Time
}

const proofLifetime = time.Second

func newDenyCache(n int) *denyCache {
	c := &denyCache{seed: maphash.MakeSeed(), capacity: (n + 15) / 16}
	for i := range c.shards {
		c.shards[i].proofs = map[string]proof{}
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
	p, ok := c.find(key)
	b, isBucket := lim.(*bucket)
	if !ok || !isBucket || p.limit != lim || n > b.MaxCost {
		return false
	}
	latest, earliest := p.serverTime(time.Now())
	// RetryAfter counts from the earliest time that the server can have, so that
	// it suffices.
	switch {
	case !p.banned:
		if _, answer, _ := b.gcra.Answer(p.tat, latest, n); answer.Allowed {
			return false
		}
		_, answer, quota := b.gcra.Answer(p.tat, earliest, n)
		*d = decision(answer, quota)
	case p.tat > latest:
		*d = whileBanned(b, n, p.tat-earliest)
	default:
		return false
	}
	d.Source = algo.SourceDenyCache
	return true
}

func (c *denyCache) find(key string) (proof, bool) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.proofs[key]
	if ok && time.Since(p.received) >= proofLifetime {
		delete(s.proofs, key)
		return proof{}, false
	}
	return p, ok
}

// banned returns how long the key of a record is banned, as far as it is known, and
// whether that is fresh: a ban is kept until it ends, for the decisions without Redis.
func (c *denyCache) banned(record string) (left time.Duration, fresh bool) {
	if c.capacity == 0 {
		return 0, false
	}
	s := c.shard(record)
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.proofs[record]
	if !ok {
		return 0, false
	}
	latest, earliest := p.serverTime(time.Now())
	if p.tat <= latest {
		delete(s.proofs, record)
		return 0, false
	}
	return micros(p.tat - earliest), time.Since(p.received) < proofLifetime
}

// noteBan keeps a ban, under the key of its record.
func (c *denyCache) noteBan(record string, r *request) {
	if c.capacity > 0 {
		c.put(record, proof{tat: r.answer(1).reply[0], now: r.now, banned: true, sent: r.sent, received: time.Now()})
	}
}

// serverTime bounds the server's time at now. The two clocks may drift apart by
// one part in a thousand.
func (p *proof) serverTime(now time.Time) (latest, earliest int64) {
	longest, shortest := now.Sub(p.sent).Microseconds(), now.Sub(p.received).Microseconds()
	return p.now + longest + longest/1000 + 1, p.now + shortest - shortest/1000 - 1
}

// note keeps the proof of a denial. A full shard evicts any one of its proofs.
func (c *denyCache) note(r *request, d *algo.Decision) {
	if _, isBucket := r.limit.(*bucket); !isBucket || c.capacity == 0 || d.Reason != algo.Quota {
		return
	}
	c.put(r.keys[0], proof{r.limit, r.now, r.reply[0], r.answer(0).flag() == flagBanned, r.sent, time.Now()})
}

func (c *denyCache) put(key string, p proof) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.proofs[key]; !known && len(s.proofs) >= c.capacity {
		for victim := range s.proofs {
			delete(s.proofs, victim)
			break
		}
	}
	s.proofs[key] = p
}

// drop removes the proof about key.
func (c *denyCache) drop(key string) {
	if c.capacity == 0 {
		return
	}
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.proofs, key)
}
