package algo_test

import (
	"strconv"
	"testing"

	"github.com/sluice-go/sluice/algo"
)

// windowBenches are limiters that admit all that a benchmark asks for, with a
// token bucket to compare with. (A log is measured while it denies and while
// it admits and gives back: it cannot admit for ever.)
var windowBenches = []struct {
	name string
	warm int64 // the first charge to a key, that it stays live
	make func(opts ...algo.Option) (window, error)
}{
	{"tokenbucket", 1 << 42, func(opts ...algo.Option) (window, error) {
		return orNil(algo.NewTokenBucket(algo.PerSecond(1_000_000_000), append(opts, algo.Burst(1<<53))...))
	}},
	{"fixed", 1, func(opts ...algo.Option) (window, error) {
		return orNil(algo.NewFixedWindow(algo.PerSecond(1_000_000_000), opts...))
	}},
	{"fixed/spread", 1, func(opts ...algo.Option) (window, error) {
		return orNil(algo.NewFixedWindow(algo.PerSecond(1_000_000_000), append(opts, algo.Spread())...))
	}},
	{"sliding", 1, func(opts ...algo.Option) (window, error) {
		return orNil(algo.NewSlidingWindow(algo.PerSecond(1_000_000_000), opts...))
	}},
	{"cells", 1, func(opts ...algo.Option) (window, error) {
		return orNil(algo.NewSlidingWindow(algo.PerSecond(1_000_000_000), append(opts, algo.Cells(10))...))
	}},
	{"strict", 1 << 28, func(opts ...algo.Option) (window, error) {
		return orNil(newStrict(algo.PerSecond(1_000_000_000), opts...))
	}},
	{"log", 1, func(opts ...algo.Option) (window, error) {
		return orNil(algo.NewSlidingLog(algo.PerSecond(1000), opts...))
	}},
}

func BenchmarkWindows(b *testing.B) {
	for _, c := range windowBenches {
		admit := algo.Must(c.make())
		b.Run("allow/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				admit.Allow("", 1)
			}
		})
		b.Run("acquire+release/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lease, _ := admit.Acquire(ctx, "", 1)
				lease.Release(algo.Canceled)
			}
		})
	}
}

func BenchmarkWindowsKeyed(b *testing.B) {
	const n = 1 << 10
	ks := keys(n)
	for _, c := range windowBenches {
		b.Run(c.name+"/"+strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			l := algo.Must(c.make(algo.MaxKeys(n)))
			for _, k := range ks {
				if !l.Allow(k, c.warm) {
					b.Fatal("a key that is not live is inserted again and again")
				}
			}
			i := 0
			for b.Loop() {
				l.Allow(ks[i*7919%n], 1)
				i++
			}
		})
	}
}
