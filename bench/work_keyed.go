package main

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/sluice-go/sluice/algo"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"
)

// keyed is one limiter for all of ks, each of which has been charged before and
// has debt for longer than the run takes. Everything is admitted.
func keyed(ks []string, stores stores) []contender {
	table := warm(ks)
	ctx := context.Background()
	var xtimes sync.Map
	return seen(ks, []contender{
		{"floor: clock, hash, swap", floor, keyedFloor(ks)},
		{"sluice Allow", ours, each(ks, func(k string) bool { return table.Allow(k, 1) })},
		{"sluice Acquire and Release", ours, keyedAcquire(ks, table)},
		{"go-limiter Take", peer, each(ks, func(k string) bool {
			_, _, _, ok, err := stores.golimiter.Take(ctx, k)
			return ok && err == nil
		})},
		{"throttled RateLimitCtx", peer, each(ks, func(k string) bool {
			limited, _, err := stores.throttled.RateLimitCtx(ctx, k, 1)
			return !limited && err == nil
		})},
		{"ulule Get", peer, each(ks, func(k string) bool {
			c, err := stores.ulule.Get(ctx, k)
			return !c.Reached && err == nil
		})},
		{"sync.Map of x/time/rate", peer, each(ks, func(k string) bool {
			l, ok := xtimes.Load(k)
			if !ok {
				l, _ = xtimes.LoadOrStore(k, rate.NewLimiter(fast, huge))
			}
			return l.(*rate.Limiter).Allow()
		})},
	})
}

// seen lets each contender charge every key once.
func seen(ks []string, cs []contender) []contender {
	for _, c := range cs {
		c.run(len(ks))
	}
	return cs
}

// warm is a table in which every key has a debt of over an hour.
func warm(ks []string) *algo.TokenBucket {
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(fast), algo.Burst(1<<53), algo.MaxKeys(len(ks))))
	for _, k := range ks {
		l.Allow(k, 1<<42)
	}
	return l
}

// each asks for the keys in turn. Goroutines begin far from each other. Every
// contender, the floor too, pays for the call of admitted.
func each(ks []string, admitted func(key string) bool) func(int) int {
	var begin atomic.Int64
	return func(n int) (count int) {
		i := int(begin.Add(1)*1_000_003) % len(ks)
		for range n {
			if admitted(ks[i]) {
				count++
			}
			if i++; i == len(ks) {
				i = 0
			}
		}
		return count
	}
}

func keyedAcquire(ks []string, l algo.Limiter) func(int) int {
	ctx := context.Background()
	return each(ks, func(k string) bool {
		lease, err := l.Acquire(ctx, k, 1)
		ok := err == nil && lease.Allowed
		lease.Release(algo.Succeeded)
		return ok
	})
}

// keyedFloor reads the clock, hashes the key and swaps one word of a table of
// the size that sluice would make. It does not check whose word it is.
func keyedFloor(ks []string) func(int) int {
	type slot struct{ word, _ atomic.Int64 }
	slots := make([]slot, 2*len(ks))
	seed := maphash.MakeSeed()
	start := time.Now()
	return each(ks, func(k string) bool {
		now := int64(time.Since(start))
		s := &slots[maphash.String(seed, k)&uint64(len(slots)-1)]
		for !s.word.CompareAndSwap(s.word.Load(), now) {
		}
		return true
	})
}

// stores are the peers that have keys of their own.
type stores struct {
	golimiter limiter.Store
	throttled *throttled.GCRARateLimiterCtx
	ulule     *ulule.Limiter
}

// newStores admit everything. throttled gets the bounded store, which its
// documentation recommends.
func newStores(keys int) stores {
	return stores{
		golimiter: must(memorystore.New(&memorystore.Config{Tokens: huge, Interval: 24 * time.Hour})),
		throttled: must(throttled.NewGCRARateLimiterCtx(must(memstore.NewCtx(keys)),
			throttled.RateQuota{MaxRate: throttled.PerSec(fast), MaxBurst: huge})),
		ulule: ulule.New(memory.NewStore(), ulule.Rate{Period: 24 * time.Hour, Limit: 1 << 60}),
	}
}

// close ends the goroutine of go-limiter, which keeps its store alive. That of
// ulule ends when its store is collected.
func (s stores) close() { _ = s.golimiter.Close(context.Background()) }
