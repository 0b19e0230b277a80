package adaptive_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
)

// BenchmarkClock is the floor of a denial that reads the clock. An admission and its
// release need two readings.
func BenchmarkClock(b *testing.B) {
	start := time.Now()
	for b.Loop() {
		_ = time.Since(start)
	}
}

func BenchmarkLimiter(b *testing.B) {
	ctx := context.Background()
	cycle := func(make func() adaptive.Strategy, opts ...adaptive.Option) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			var l algo.Limiter = algo.Must(adaptive.New(make(), opts...))
			for b.Loop() {
				lease, _ := l.Acquire(ctx, "", 1)
				lease.Release(algo.Succeeded)
			}
		}
	}
	hundred := func() adaptive.Strategy { return adaptive.Fixed(100) }
	b.Run("fixed/acquire+release", cycle(hundred))
	b.Run("queue/acquire+release", cycle(hundred, adaptive.WithQueue(adaptive.FIFO(10, time.Second))))
	b.Run("priorities/acquire+release", cycle(func() adaptive.Strategy { return gated(100) }, adaptive.WithPriorities()))
	b.Run("bbr/acquire+release", cycle(func() adaptive.Strategy { return newBBR(new(dial)) }))
	b.Run("gradient2/acquire+release", cycle(func() adaptive.Strategy { return strategy.Gradient2() }))
	b.Run("kratos/acquire+release", cycle(func() adaptive.Strategy { return strategy.CompatKratos(strategy.WithSignal(new(dial))) }))
	b.Run("default/acquire+release", cycle(func() adaptive.Strategy { return adaptive.Default() }))
	for _, strained := range []bool{false, true} {
		name := map[bool]string{true: "shares/overload/acquire+release", false: "shares/acquire+release"}[strained]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			l := algo.Must(adaptive.New(adaptive.Default(), adaptive.WithFairShares(nil), adaptive.WithPriorities()))
			if strained {
				adaptive.Strain(l)
			}
			for b.Loop() {
				lease, _ := l.Acquire(ctx, "tenant-1", 1)
				lease.Release(algo.Succeeded)
			}
		})
	}
	b.Run("default/parallel", func(b *testing.B) {
		b.ReportAllocs()
		l := algo.Must(adaptive.New(adaptive.Default()))
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				lease, _ := l.Acquire(ctx, "", 1)
				lease.Release(algo.Succeeded)
			}
		})
	})
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
	for name, make := range map[string]func() adaptive.Strategy{
		"fixed":     func() adaptive.Strategy { return adaptive.Fixed(1) },
		"default":   func() adaptive.Strategy { return adaptive.Default() },
		"bbr":       func() adaptive.Strategy { return newBBR(new(dial)) },
		"gradient2": func() adaptive.Strategy { return strategy.Gradient2() },
	} {
		b.Run(name+"/reject", func(b *testing.B) {
			b.ReportAllocs()
			var l algo.Limiter = algo.Must(adaptive.New(make(), adaptive.WithLimits(1, 1)))
			held, _ := l.Acquire(ctx, "", 1)
			defer held.Release(algo.Succeeded)
			for b.Loop() {
				lease, _ := l.Acquire(ctx, "", 1)
				lease.Release(algo.Succeeded)
			}
		})
	}
}

func BenchmarkPerKey(b *testing.B) {
	ctx := context.Background()
	b.Run("acquire+release", func(b *testing.B) {
		b.ReportAllocs()
		var k algo.Limiter = perKey(b, 10)
		for b.Loop() {
			lease, _ := k.Acquire(ctx, "192.0.2.1", 1)
			lease.Release(algo.Succeeded)
		}
	})
	b.Run("reject", func(b *testing.B) {
		b.ReportAllocs()
		var k algo.Limiter = perKey(b, 1)
		held, _ := k.Acquire(ctx, "192.0.2.1", 1)
		defer held.Release(algo.Succeeded)
		for b.Loop() {
			lease, _ := k.Acquire(ctx, "192.0.2.1", 1)
			lease.Release(algo.Succeeded)
		}
	})
}

func BenchmarkSignal(b *testing.B) {
	for _, s := range []signal.Signal{signal.CPU(), signal.Runnable(), signal.SchedLatency(), signal.Memory()} {
		b.Run(s.(interface{ String() string }).String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Read()
			}
		})
	}
}
