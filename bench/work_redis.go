package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	goredisstore "github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	ululestore "github.com/ulule/limiter/v3/drivers/store/redis"
)

const (
	redisExact  = "sluice, exact"
	redisBlocks = "sluice, blocks"
	redisCache  = "sluice, deny cache"
	redisRate   = "redis_rate"
	redisKeys   = 10_000
	redisExcess = 20_000 // units that blocks may admit beyond the limit
)

// ample is more than a run can spend with the burst that it gets, and spent is
// gone after the first.
var (
	ample = quota{1_000_000, time.Second}
	spent = quota{1, time.Hour}
)

func (q quota) burst() int {
	if q == ample {
		return 1_000_000_000
	}
	return q.units
}

// redisWorks are decisions on a Redis at addr, which shares the cores with the
// callers. The floor is a script that reads one key.
func redisWorks(addr string) []work {
	on := func(id, title string, callers, keys int, contenders func(*redisBed) []contender) work {
		var bed *redisBed
		return work{id: id, title: "Redis, " + title, cores: 2, callers: callers, slow: true, us: redisExact,
			make: func() []contender {
				bed = newRedisBed(addr, keys)
				return contenders(bed)
			},
			end: func() { bed.close() }}
	}
	exact := func(b *redisBed) []contender {
		return []contender{b.script("one"), b.ours(redisExact, ample), b.peer(ample), b.throttled(ample), b.ulule(ample)}
	}
	lone := on("redis-lone", "one caller, one key", 1, 1, exact)
	lone.cores = 1
	hot := on("redis-hot", "256 callers, one hot key", 256, 1, func(b *redisBed) []contender {
		return append(exact(b)[:3], b.ours(redisBlocks, ample, distributed.WithBlocks(redisExcess)))
	})
	hot.us = redisBlocks
	denied := on("redis-denied", "256 callers, one denied key", 256, 1, func(b *redisBed) []contender {
		return []contender{b.script("none"), b.ours(redisCache, spent), b.peer(spent)}
	})
	denied.us, denied.denied = redisCache, true
	all := []work{lone}
	for _, callers := range []int{2, 4, 8, 16, 64, 256, 2000} {
		all = append(all, on(fmt.Sprint("redis-", callers), fmt.Sprint(callers, " callers, 10 000 keys"), callers, redisKeys, exact))
	}
	return append(all, hot, denied)
}

// redisBed is a client with the keys that are asked for.
type redisBed struct {
	client *redis.Client
	keys   []string
	stores []*distributed.Store
}

func newRedisBed(addr string, n int) *redisBed {
	b := &redisBed{client: redis.NewClient(&redis.Options{Addr: addr, PoolSize: 300}), keys: keys(n)}
	algo.Must(b.client.FlushAll(context.Background()).Result())
	return b
}

func (b *redisBed) close() {
	for _, s := range b.stores {
		_ = s.Close()
	}
	_ = b.client.Close()
}

// inTurn asks for every key of a spent quota once beforehand.
func (b *redisBed) inTurn(q quota, admitted ask) func(int) int {
	for _, k := range b.keys {
		if q == spent {
			admitted(k, 1)
		}
	}
	return inTurn(b.keys, admitted)
}

// script is a plain EVALSHA that finds one key, or none.
func (b *redisBed) script(answer string) contender {
	ctx := context.Background()
	plain := redis.NewScript(`return redis.call('GET', KEYS[1])`)
	algo.Must(plain.Load(ctx, b.client).Result())
	if answer == "one" {
		for _, k := range b.keys {
			algo.Must(b.client.Set(ctx, k, answer, 0).Result())
		}
	}
	return contender{"plain EVALSHA", floor, b.inTurn(ample, func(k string, _ int) bool {
		return plain.EvalSha(ctx, b.client, []string{k}).Err() == nil
	})}
}

func (b *redisBed) ours(name string, q quota, opts ...distributed.Option) contender {
	opts = append(opts, distributed.WithTimeout(time.Second), distributed.WithPrefix(fmt.Sprint("s", len(b.stores))))
	s := algo.Must(distributed.New(b.client, opts...))
	b.stores = append(b.stores, s)
	l := algo.Must(s.TokenBucket("l", q.rate(), algo.Burst(int64(q.burst()))))
	return contender{name, ours, b.inTurn(q, acquiring(l))}
}

func (b *redisBed) peer(q quota) contender {
	l := redis_rate.NewLimiter(b.client)
	limit := redis_rate.Limit{Rate: q.units, Burst: q.burst(), Period: q.period}
	ctx := context.Background()
	return contender{redisRate, peer, b.inTurn(q, func(k string, _ int) bool {
		res, err := l.Allow(ctx, k, limit)
		return err == nil && res.Allowed > 0
	})}
}

// throttled repeats a decision whose key another caller has changed meanwhile.
func (b *redisBed) throttled(q quota) contender {
	const attempts = 1000
	l := newThrottled(q, algo.Must(goredisstore.NewCtx(b.client, "throttled:")))
	l.SetMaxCASAttemptsLimit(attempts)
	return contender{"throttled", peer, b.inTurn(q, throttledAsk(l))}
}

// ulule counts in fixed windows, so its limit is the burst.
func (b *redisBed) ulule(q quota) contender {
	l := limiter.New(algo.Must(ululestore.NewStore(b.client)), limiter.Rate{Limit: int64(q.burst()), Period: q.period})
	return contender{"ulule", peer, b.inTurn(q, ululeAsk(l))}
}

// remoteCost is the cost of a decision on the server and on the way to it.
type remoteCost struct {
	library  string
	key      float64 // bytes of a key, its name included
	cpu      float64 // microseconds of the server, user and system
	sent     float64 // bytes to the server
	received float64 // bytes from it
}

// remoteCosts lets 256 callers make decisions on 10 000 keys.
func remoteCosts(addr string) (all []remoteCost) {
	const callers, decisions = 256, 100_000
	for _, make := range []func(*redisBed, quota) contender{
		func(b *redisBed, q quota) contender { return b.ours(sluice, q) },
		(*redisBed).peer, (*redisBed).throttled, (*redisBed).ulule,
	} {
		b := newRedisBed(addr, 1)
		make(b, spent).run(1)
		key := b.keyBytes()
		b.close()
		b = newRedisBed(addr, redisKeys)
		c := make(b, ample)
		c.run(redisKeys) // makes the keys, and connections
		before := b.info()
		var group sync.WaitGroup
		for range callers {
			group.Go(func() { c.run(decisions / callers) })
		}
		group.Wait()
		after := b.info()
		each := func(field string) float64 { return (after[field] - before[field]) / decisions }
		all = append(all, remoteCost{
			library: c.name, key: key,
			cpu:  1e6 * (each("used_cpu_user") + each("used_cpu_sys")),
			sent: each("total_net_input_bytes"), received: each("total_net_output_bytes"),
		})
		b.close()
	}
	return all
}

// info has the numbers of INFO.
func (b *redisBed) info() map[string]float64 {
	numbers := map[string]float64{}
	for _, line := range strings.Split(algo.Must(b.client.Info(context.Background(), "cpu", "stats").Result()), "\r\n") {
		field, value, _ := strings.Cut(line, ":")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			numbers[field] = n
		}
	}
	return numbers
}

// keyBytes is the MEMORY USAGE of everything that the server keeps for the only
// key.
func (b *redisBed) keyBytes() (sum float64) {
	ctx := context.Background()
	for _, k := range algo.Must(b.client.Keys(ctx, "*"+b.keys[0]+"*").Result()) {
		sum += float64(algo.Must(b.client.MemoryUsage(ctx, k).Result()))
	}
	return sum
}
