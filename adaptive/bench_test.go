package adaptive_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// BenchmarkClock is what no denial that reads the clock can be faster than;
// an admission and its release need two readings.
func BenchmarkClock(b *testing.B) {
	start := time.Now()
	for b.Loop() {
		_ = time.Since(start)
	}
}

func BenchmarkLimiter(b *testing.B) {
	ctx := context.Background()
	cycle := func(s adaptive.Strategy, opts ...adaptive.Option) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			var l algo.Limiter = algo.Must(adaptive.New(s, opts...))
			for b.Loop() {
				lease, _ := l.Acquire(ctx, "", 1)
				lease.Release(algo.Succeeded)
			}
		}
	}
	b.Run("fixed/acquire+release", cycle(adaptive.Fixed(100)))
	b.Run("queue/acquire+release", cycle(adaptive.Fixed(100), adaptive.WithQueue(adaptive.FIFO(10, time.Second))))
	b.Run("priorities/acquire+release", cycle(adaptive.Fixed(100), adaptive.WithPriorities()))
	b.Run("fixed/parallel", func(b *testing.B) {
		b.ReportAllocs()
		l := algo.Must(adaptive.New(adaptive.Fixed(1000)))
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				lease, _ := l.Acquire(ctx, "", 1)
				lease.Release(algo.Succeeded)
			}
		})
	})
	b.Run("fixed/reject", func(b *testing.B) {
		b.ReportAllocs()
		var l algo.Limiter = algo.Must(adaptive.New(adaptive.Fixed(1)))
		held, _ := l.Acquire(ctx, "", 1)
		defer held.Release(algo.Succeeded)
		for b.Loop() {
			lease, _ := l.Acquire(ctx, "", 1)
			lease.Release(algo.Succeeded)
		}
	})
}
