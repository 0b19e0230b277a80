package algo_test

import (
	"testing"

	"github.com/sluice-go/sluice/algo"
)

func BenchmarkAcquireAll(b *testing.B) {
	reqs := make([]algo.Request, 4)
	for i := range reqs {
		reqs[i] = algo.Request{Limiter: fastBucket(b), N: 1}
	}
	run := func(name string, reqs ...algo.Request) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lease, _ := algo.AcquireAll(bg, reqs...)
				lease.Release(algo.Succeeded)
			}
		})
	}
	empty := algo.Request{Limiter: emptyBucket(b), N: 1}
	run("two", reqs[:2]...)
	run("four", reqs...)
	run("deny/first", empty, reqs[0])
	run("deny/last", reqs[0], empty)
}

func BenchmarkWrappers(b *testing.B) {
	empty := keySet(b, []string{"root"}, []string{"internal-"})
	for name, l := range map[string]algo.Limiter{
		"shadow":    algo.Shadow(fastBucket(b)),
		"switch":    algo.NewSwitch(fastBucket(b)),
		"allowlist": algo.AllowList(fastBucket(b), empty),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lease, _ := l.Acquire(bg, "", 1)
				lease.Release(algo.Succeeded)
			}
		})
	}
}
