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
	spec string
}{
	{"tokenbucket", 1 << 42, "1000000000/s burst 9007199254740992"},
	{"fixed", 1, "fixed-window 1000000000/s"},
	{"fixed/spread", 1, "fixed-window 1000000000/s spread"},
	{"sliding", 1, "sliding-window 1000000000/s"},
	{"cells", 1, "sliding-window 1000000000/s cells 10"},
	{"strict", 1 << 28, "strict 1000000000/s"},
	{"log", 1, "sliding-log 1000/s"},
}

func BenchmarkWindows(b *testing.B) {
	for _, c := range windowBenches {
		admit := made(c.spec)
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
			l := made(c.spec, algo.MaxKeys(n))
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
