package redis

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

const (
	rounds  = 5
	span    = 400 * time.Millisecond // of one measurement
	manyKey = 10_000
)

// contender decides on a key once.
type contender struct {
	name string
	call func(key string)
}

// work is a number of callers over a number of keys.
type work struct {
	name          string
	callers, keys int
	contenders    []contender
}

// BenchmarkRedis measures decisions a second against redis_rate and a plain
// script call on the same server, in turns, and prints medians and ratios. Run
// it once:
//
//	go test -run '^$' -bench Redis -benchtime 1x ./redis
func BenchmarkRedis(b *testing.B) {
	server := redistest.Start(b)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 300})
	defer client.Close()
	ctx := context.Background()

	exact := limiter(b, client, "exact", 1_000_000)
	blocks := limiter(b, client, "blocks", 1_000_000, distributed.WithBlocks(20_000))
	denied := limiter(b, client, "denied", 1)
	plain := redis.NewScript(`return redis.call('GET', KEYS[1])`)
	plain.Load(ctx, client)
	rate := redis_rate.NewLimiter(client)
	open := redis_rate.Limit{Rate: 1_000_000, Burst: 1_000_000, Period: time.Second}
	shut := redis_rate.Limit{Rate: 1, Burst: 1, Period: time.Hour}

	ours := func(name string, l algo.Limiter) contender {
		return contender{name, func(key string) {
			lease, err := l.Acquire(ctx, key, 1)
			if err != nil {
				b.Error(err)
			}
			lease.Release(algo.Succeeded)
		}}
	}
	theirs := func(limit redis_rate.Limit) contender {
		return contender{"redis_rate", func(key string) {
			if _, err := rate.Allow(ctx, key, limit); err != nil {
				b.Error(err)
			}
		}}
	}
	script := contender{"plain EVALSHA", func(key string) { plain.EvalSha(ctx, client, []string{"plain:" + key}) }}
	all := []contender{ours("sluice, exact", exact), theirs(open), script}
	for _, w := range []work{
		{"one caller, one key", 1, 1, all},
		{"64 callers, 10 k keys", 64, manyKey, all},
		{"256 callers, 10 k keys", 256, manyKey, all},
		{"256 callers, one hot key", 256, 1, append([]contender{ours("sluice, blocks", blocks)}, all...)},
		{"256 callers, one denied key", 256, 1, []contender{ours("sluice, deny cache", denied), theirs(shut)}},
	} {
		w.report(b)
	}
	bytesPerKey(b, client, server)
}

func limiter(b *testing.B, client *redis.Client, name string, n int64, opts ...distributed.Option) algo.Limiter {
	opts = append(opts, distributed.WithTimeout(time.Second), distributed.WithPrefix(name))
	store, err := distributed.New(client, opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	r := algo.PerSecond(n)
	if n == 1 {
		r = algo.PerHour(1)
	}
	l, err := store.TokenBucket("l", r)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// report measures the contenders in turns.
func (w work) report(b *testing.B) {
	figures := make([][]float64, len(w.contenders))
	for range rounds {
		for i, c := range w.contenders {
			figures[i] = append(figures[i], w.measure(c))
		}
	}
	first := median(figures[0])
	fmt.Printf("\n%s\n", w.name)
	for i, c := range w.contenders {
		m := median(figures[i])
		fmt.Printf("  %-20s %9.0f/s  %8.1f us a call  sluice is %.2f x\n",
			c.name, m, 1e6*float64(w.callers)/m, first/m)
	}
}

func (w work) measure(c contender) float64 {
	keys := make([]string, w.keys)
	for i := range keys {
		keys[i] = fmt.Sprintf("user-%d", i*7919)
	}
	var calls atomic.Int64
	var group sync.WaitGroup
	began := time.Now()
	for g := range w.callers {
		group.Go(func() {
			n := 0
			for ; time.Since(began) < span; n++ {
				c.call(keys[(g*31+n*7919)%len(keys)])
			}
			calls.Add(int64(n))
		})
	}
	group.Wait()
	return float64(calls.Load()) / time.Since(began).Seconds()
}

func median(x []float64) float64 {
	for i := range x {
		for j := range i {
			if x[i] < x[j] {
				x[i], x[j] = x[j], x[i]
			}
		}
	}
	return x[len(x)/2]
}

// bytesPerKey asks Redis what a key of ours and one of redis_rate take.
func bytesPerKey(b *testing.B, client *redis.Client, server *redistest.Server) {
	ctx := context.Background()
	server.Flush()
	l := limiter(b, client, "p", 1)
	lease, err := l.Acquire(ctx, "user-123456", 1)
	if err != nil || !lease.Allowed {
		b.Fatal(lease, err)
	}
	if _, err := redis_rate.NewLimiter(client).Allow(ctx, "user-123456", redis_rate.PerHour(1)); err != nil {
		b.Fatal(err)
	}
	fmt.Printf("\nbytes a key\n")
	for _, pattern := range []string{"p:*", "rate:*"} {
		keys := client.Keys(ctx, pattern).Val()
		for _, k := range keys {
			if client.Type(ctx, k).Val() == "string" {
				fmt.Printf("  %-40s %d\n", k, client.MemoryUsage(ctx, k).Val())
			}
		}
	}
}
