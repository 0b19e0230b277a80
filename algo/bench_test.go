package algo_test

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// BenchmarkFloor is the least time of any limiter: one reading of the clock,
// one load and one compare-and-swap.
func BenchmarkFloor(b *testing.B) {
	start := time.Now()
	var word atomic.Int64
	for b.Loop() {
		now := int64(time.Since(start))
		word.CompareAndSwap(word.Load(), now)
	}
}

func fastBucket(b *testing.B, opts ...algo.Option) *algo.RateLimiter {
	b.Helper()
	b.ReportAllocs()
	opts = append([]algo.Option{algo.Burst(1 << 40)}, opts...)
	return algo.Must(algo.NewTokenBucket(algo.PerSecond(1_000_000_000), opts...))
}

func emptyBucket(b *testing.B) *algo.RateLimiter {
	b.Helper()
	b.ReportAllocs()
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(1), algo.Burst(1)))
	l.Allow("", 1)
	return l
}

func BenchmarkTokenBucket(b *testing.B) {
	ctx := context.Background()
	b.Run("allow", func(b *testing.B) {
		l := fastBucket(b)
		for b.Loop() {
			l.Allow("", 1)
		}
	})
	b.Run("allow/deny", func(b *testing.B) {
		l := emptyBucket(b)
		for b.Loop() {
			l.Allow("", 1)
		}
	})
	b.Run("acquire+release", func(b *testing.B) {
		var l algo.Limiter = fastBucket(b)
		for b.Loop() {
			lease, _ := l.Acquire(ctx, "", 1)
			lease.Release(algo.Succeeded)
		}
	})
	b.Run("acquire+release/deny", func(b *testing.B) {
		var l algo.Limiter = emptyBucket(b)
		for b.Loop() {
			lease, _ := l.Acquire(ctx, "", 1)
			lease.Release(algo.Succeeded)
		}
	})
}

// warmBucket has seen all keys, and they stay live: 1 unit takes an hour.
func warmBucket(b *testing.B, ks []string) *algo.RateLimiter {
	b.Helper()
	b.ReportAllocs()
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(1_000_000_000),
		algo.Burst(1<<53), algo.MaxKeys(len(ks))))
	for _, k := range ks {
		lease, _ := l.Acquire(context.Background(), k, 1<<42)
		lease.Release(algo.Succeeded)
	}
	return l
}

func keys(n int) []string {
	ks := make([]string, n)
	for i := range ks {
		ks[i] = "user-" + strconv.Itoa(i*7919)
	}
	return ks
}

func BenchmarkKeyed(b *testing.B) {
	ctx := context.Background()
	b.Run("allow/expired", func(b *testing.B) {
		l, ks := fastBucket(b), keys(1<<10) // a unit is back in 1 ns
		i := 0
		for b.Loop() {
			l.Allow(ks[i%len(ks)], 1)
			i++
		}
	})
	for _, n := range []int{1, 1 << 10, 1 << 17} {
		ks := keys(n)
		b.Run("allow/"+strconv.Itoa(n), func(b *testing.B) {
			l := warmBucket(b, ks)
			i := 0
			for b.Loop() {
				l.Allow(ks[i*7919%n], 1)
				i++
			}
		})
		b.Run("acquire+release/"+strconv.Itoa(n), func(b *testing.B) {
			var l algo.Limiter = warmBucket(b, ks)
			i := 0
			for b.Loop() {
				lease, _ := l.Acquire(ctx, ks[i*7919%n], 1)
				lease.Release(algo.Succeeded)
				i++
			}
		})
		b.Run("parallel/allow/"+strconv.Itoa(n), func(b *testing.B) {
			l := warmBucket(b, ks)
			var starts atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				i := int(starts.Add(1)) * 1000
				for pb.Next() {
					l.Allow(ks[i*7919%n], 1)
					i++
				}
			})
		})
	}
}

// BenchmarkMemory reports the bytes that a limiter takes for each of a million
// live keys.
func BenchmarkMemory(b *testing.B) {
	const n = 1_000_000
	ks := keys(n)
	for b.Loop() {
		before := heap()
		l := algo.Must(algo.NewTokenBucket(algo.PerHour(100), algo.MaxKeys(n)))
		for _, k := range ks {
			l.Allow(k, 1)
		}
		b.ReportMetric(float64(heap()-before)/n, "B/key")
		b.ReportMetric(float64(l.Stats().Live)/n, "live/key")
		b.ReportMetric(float64(l.Stats().Overflowed), "overflowed")
		runtime.KeepAlive(l)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
