package algo_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algo"
	colors "github.com/sluice-go/sluice/algo/marker"
)

// BenchmarkShapes compares the other limiters with the token bucket on the same
// work in the same run: one unit of the own bucket, always admitted.
func BenchmarkShapes(b *testing.B) {
	fast := algo.PerSecond(1_000_000_000)
	much := algo.Burst(1 << 40)
	srtcm, err := colors.NewSRTCM(fast, 1<<40, 1<<40)
	if err != nil {
		b.Fatal(err)
	}
	trtcm, err := colors.NewTRTCM(fast, 1<<40, fast, 1<<40)
	if err != nil {
		b.Fatal(err)
	}
	type limiter interface {
		algo.Limiter
		Allow(key string, n int64) bool
	}
	for _, c := range []struct {
		name string
		l    limiter
	}{
		{"TokenBucket", algo.Must(algo.NewTokenBucket(fast, much))},
		{"LeakyBucket", algo.Must(algo.NewLeakyBucket(fast, much))},
		{"Pacer", algo.Must(algo.NewPacer(fast, algo.Slack(1<<40)))},
		{"Nginx", algo.Must(newNginx(fast, much, algo.NoDelay()))},
		{"SmoothBursty", algo.Must(newSmoothBursty(fast, much))},
		{"SmoothWarmingUp", algo.Must(newSmoothWarmingUp(fast, 1, algo.MaxWait(algo.Forever)))},
	} {
		b.Run(c.name+"/allow", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.l.Allow("", 1)
			}
		})
		benchmarkAcquire(b, c.name, c.l)
	}
	b.Run("SRTCM/mark", func(b *testing.B) { benchmarkMark(b, srtcm) })
	b.Run("TRTCM/mark", func(b *testing.B) { benchmarkMark(b, trtcm) })
	benchmarkAcquire(b, "FromMarker", colors.Limit(srtcm, colors.Yellow))
}

func benchmarkAcquire(b *testing.B, name string, l algo.Limiter) {
	b.Run(name+"/acquire+release", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			lease, _ := l.Acquire(context.Background(), "", 1)
			lease.Release(algo.Succeeded)
		}
	})
}

func benchmarkMark(b *testing.B, m colors.Marker) {
	b.ReportAllocs()
	for b.Loop() {
		m.Mark(context.Background(), "", 1, colors.Green)
	}
}

// BenchmarkShapesWarmingUpDenied is the path of a denial, under the lock.
func BenchmarkShapesWarmingUpDenied(b *testing.B) {
	b.ReportAllocs()
	l := algo.Must(newSmoothWarmingUp(algo.PerHour(1), time.Hour))
	l.Allow("", 1)
	for b.Loop() {
		l.Allow("", 1)
	}
}
