package distributed

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// denyCache answers for buckets that Redis has just denied, without asking
// again. It is exact: a TAT falls only by a refund, a reset or a raised limit,
// so a denial proves every later one until the TAT has come near enough, for
// any cost. The server's time is bounded from above by the time at which the
// question was sent, so an answer can be too late but never too early.
//
// What this process gives back, resets or changes drops the proof. What other
// processes do is noticed when the proof expires, after a second.
type denyCache struct {
	seed   maphash.Seed
	shards [16]denyShard
	most   int // of each shard; 0: off
}

type denyShard struct {
	mu     sync.Mutex
	proofs map[string]proof // by Redis key
}

// proof is what a denial said.
type proof struct {
	limit limit // the parameters that it was asked with
	now   int64 // the server's time
	tat   int64
	flag  int64
	sent  time.Time
	heard time.Time
}

const proofLifetime = time.Second

func newDenyCache(n int) *denyCache {
	c := &denyCache{seed: maphash.MakeSeed(), most: (n + 15) / 16}
	for i := range c.shards {
		c.shards[i].proofs = map[string]proof{}
	}
	return c
}

func (c *denyCache) shard(key string) *denyShard {
	return &c.shards[maphash.String(c.seed, key)%uint64(len(c.shards))]
}

// denies writes the denial of n > 0 units, if it is proven.
func (c *denyCache) denies(d *algo.Decision, lim limit, key string, n int64) bool {
	if c.most == 0 || n == 0 {
		return false
	}
	p, ok := c.find(key)
	g, bucket := lim.(*gcra)
	if !ok || !bucket || p.limit != lim || n > g.most {
		return false
	}
	latest, earliest := p.span(time.Now())
	if p.overshoot(g, latest, n) <= g.wait {
		return false
	}
	// RetryAfter counts from the earliest time that it can be on the server, so
	// that it suffices.
	g.explain(d, earliest, []int64{p.tat, p.overshoot(g, earliest, n), p.flag}, n)
	d.Source = algo.SourceDenyCache
	return true
}

// overshoot is what the script would reply at now.
func (p *proof) overshoot(g *gcra, now, n int64) int64 {
	if p.flag == flagBlocked {
		if p.tat <= now {
			return 0
		}
		return p.tat - now + g.wait
	}
	return max(p.tat, now) + n*g.emission - now - g.depth
}

func (c *denyCache) find(key string) (proof, bool) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.proofs[key]
	if ok && time.Since(p.heard) >= proofLifetime {
		delete(s.proofs, key)
		return proof{}, false
	}
	return p, ok
}

// span is between which instants the server's clock is at now. Clocks may
// drift against each other by one part in a thousand.
func (p *proof) span(now time.Time) (latest, earliest int64) {
	most, least := now.Sub(p.sent).Microseconds(), now.Sub(p.heard).Microseconds()
	return p.now + most + most/1000 + 1, p.now + least - least/1000 - 1
}

// note keeps what a denial proves. A full shard loses any one of its proofs.
func (c *denyCache) note(e *entry, d *algo.Decision) {
	if _, bucket := e.limit.(*gcra); !bucket || c.most == 0 || d.Reason != algo.Quota {
		return
	}
	key := e.keys[0]
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.proofs[key]; !known && len(s.proofs) >= c.most {
		for victim := range s.proofs {
			delete(s.proofs, victim)
			break
		}
	}
	s.proofs[key] = proof{e.limit, e.now, e.reply[0], e.reply[2], e.sent, time.Now()}
}

// drop forgets what was proven about key.
func (c *denyCache) drop(key string) {
	if c.most == 0 {
		return
	}
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.proofs, key)
}
