package algo

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDivisor(t *testing.T) {
	rnd := rand.New(rand.NewPCG(41, 42))
	for range 100_000 {
		d := newDivisor(1 + rnd.Int64N(1<<(1+rnd.IntN(62))))
		for _, x := range []int64{
			0, 1, d.by - 1, d.by, d.by + 1, math.MaxInt64, math.MaxInt64 / d.by * d.by,
			rnd.Int64N(math.MaxInt64),
		} {
			require.Equal(t, max(x, 0)/d.by, d.quo(max(x, 0)), "%d / %d", x, d.by)
		}
	}
}

// FuzzWindowDecide: no input panics, and nothing is admitted beyond the quota.
func FuzzWindowDecide(f *testing.F) {
	f.Add(int64(10), int64(time.Second), 0, int64(0), int64(1), int64(5), int64(7))
	f.Add(int64(1), int64(1), 1, int64(math.MaxInt64), int64(math.MaxInt64), int64(0), int64(math.MaxInt64))
	f.Add(int64(1e9), int64(1e9), 1024, int64(math.MinInt64), int64(1e9), int64(1)<<61, int64(1))
	f.Add(int64(math.MaxInt64), int64(maxSpan), 7, int64(-1), int64(1), int64(1)<<61, int64(1)<<60)
	f.Fuzz(func(t *testing.T, count, period int64, cells int, word, n, first, second int64) {
		r := Rate{count, time.Duration(period)}
		if r.validate() != nil || n < 0 || cells < 0 || cells > mostCells {
			return
		}
		base := toTicks(maxSpan)
		first, second = base+first&(base-1), base+second&(base-1)
		all := []pure{pureFixed(must(newFixed(r, word, false)), word, 0)}
		if p, err := newSliding(r, cells); err == nil {
			all = append(all, pureSliding(p))
		}
		if p, err := newLog(r); err == nil {
			all = append(all, pureLog(p))
		}
		for _, p := range all {
			var sum int64
			for _, now := range []int64{first, second, second} {
				d, at := p.decide(now, n)
				if d.Allowed && p.cell(at) == p.cell(second) {
					sum += n
				}
				require.LessOrEqual(t, sum, p.quota)
				require.GreaterOrEqual(t, d.Remaining, int64(0))
				require.LessOrEqual(t, d.Remaining, p.quota)
				require.GreaterOrEqual(t, d.RetryAfter, time.Duration(0))
				require.GreaterOrEqual(t, d.NextAfter, time.Duration(0))
				require.GreaterOrEqual(t, d.ResetAfter, d.NextAfter)
			}
		}
	})
}
