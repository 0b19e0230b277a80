package algo_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
)

// Every wrapper forwards decisions, refunds and descriptions, and works inside
// a composition as it does alone.
func TestWrappersForward(t *testing.T) {
	in(t, map[string]func(l algo.Limiter) algo.Limiter{
		"Shadow": algo.Shadow,
		"Switch": func(l algo.Limiter) algo.Limiter { return algo.NewSwitch(l) },
		"ByKey":  func(l algo.Limiter) algo.Limiter { return listed(l, l) },
		"All":    func(l algo.Limiter) algo.Limiter { return algo.All(l, algo.Unlimited()) },
		"Ban": func(l algo.Limiter) algo.Limiter {
			return algo.Must(guard.NewBan(l, algo.PerMinute(100), time.Minute, time.Hour))
		},
		"nested": func(l algo.Limiter) algo.Limiter {
			return algo.Shadow(algo.NewSwitch(algo.All(algo.Shadow(algo.NewSwitch(l)), algo.Unlimited())))
		},
	}, func(t *testing.T, wrap func(l algo.Limiter) algo.Limiter) {
		for _, foreignInner := range []bool{false, true} {
			inner := bucket(algo.PerHour(10))
			l := wrap(inner)
			if foreignInner {
				l = wrap(&foreign{Limiter: inner})
			}
			if d := algo.About(l); !foreignInner {
				d.Off = false
				require.Equal(t, algo.Description{Rate: algo.PerHour(10), Quota: 10, Window: time.Hour}, d)
			}
			one := func(n int64) algo.Lease { return must(t, l, "k", n) }
			two := func(n int64) algo.Lease {
				return acquireAll(t, algo.Request{Limiter: l, Key: "k", N: n}, algo.Request{Limiter: bucket(algo.PerHour(99)), N: n})
			}
			for _, take := range []func(n int64) algo.Lease{one, two} {
				lease := take(6)
				require.True(t, lease.Allowed)
				require.Equal(t, int64(4), peek(t, inner, "k").Remaining)
				lease.Settle(8)
				require.Equal(t, int64(2), peek(t, inner, "k").Remaining)
				lease.Release(algo.Canceled)
				require.Equal(t, int64(10), peek(t, inner, "k").Remaining)
			}
			_, err := l.Acquire(bg, "k", -1)
			require.ErrorIs(t, err, algo.ErrCost)

			// Asked behind a denial: the same answer, and no charge.
			lease := acquireAll(t, algo.Request{Limiter: algo.DenyAll(), Key: "k", N: 1},
				algo.Request{Limiter: l, Key: "k", N: 6})
			require.False(t, lease.Allowed)
			require.True(t, lease.Parts()[1].Allowed)
			require.Equal(t, int64(10), peek(t, inner, "k").Remaining)
		}
	})
}

func TestWrappersWithoutALimiter(t *testing.T) {
	for says, wire := range map[string]func(){
		"algo: Shadow: the limiter is nil":    func() { algo.Shadow(nil) },
		"algo: NewSwitch: the limiter is nil": func() { algo.NewSwitch(nil) },
		"algo: ByKey: the function is nil":    func() { algo.ByKey(nil) },
	} {
		require.PanicsWithValue(t, says, wire)
	}
}

func BenchmarkWrappers(b *testing.B) {
	for name, l := range map[string]algo.Limiter{
		"shadow": algo.Shadow(fastBucket(b)),
		"switch": algo.NewSwitch(fastBucket(b)),
		"by key": listed(fastBucket(b), algo.Unlimited(), "root"),
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
