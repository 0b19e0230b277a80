package algo

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cases"
)

// TestStrictArithmetic: burst and refill never exceed the quota, for any quota,
// burst and period; one tick less would.
func TestStrictArithmetic(t *testing.T) {
	rnd := rand.New(rand.NewPCG(37, 38))
	for range cases.Count(50_000, 1_000_000) {
		r := Rate{1 + rnd.Int64N(1<<rnd.IntN(30)), time.Duration(1 + rnd.Int64N(1<<(1+rnd.IntN(50))))}
		q := Spec{Rate: r, Burst: (1 + rnd.Int64N(r.Count)) * rnd.Int64N(2)}
		g, err := strictTokens(q, r)
		if err != nil {
			continue // too fast, or it would take longer than a year to fill
		}
		require.LessOrEqual(t, g.burst+toTicks(r.Period)/g.emission, r.Count, "%+v", q)
		fastest := toTicks(r.Period+1) / (r.Count - g.burst + 1)
		require.LessOrEqual(t, g.emission, fastest+1)
	}
}

// TestStrictUnderJumpingClocks: no run of admissions whose readings span a
// period or less holds more than the quota.
func TestStrictUnderJumpingClocks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(39, 40))
	for range cases.Count(20_000, 1_000_000) {
		r := randomRate(rnd)
		q := Spec{Rate: r, Burst: (1 + rnd.Int64N(r.Count)) * rnd.Int64N(2)}
		g := must(strictTokens(q, r))
		burst := g.burst
		clock := jumpingClock(rnd, g.emission)
		var all []admission
		var tat int64
		for range 30 {
			now, n := clock(), 1+rnd.Int64N(min(burst, 3))
			next, over := g.charge(tat, now, n)
			if tat = next; over <= 0 {
				all = append(all, admission{now, n})
			}
		}
		for i, from := range all {
			var sum, last int64
			for _, a := range all[i:] {
				if last = max(last, a.at); last-from.at > toTicks(r.Period) {
					break
				}
				sum += a.n
			}
			require.LessOrEqual(t, sum, r.Count, "%v burst %d: %v", r, burst, all)
		}
	}
}
