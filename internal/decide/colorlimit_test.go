package decide

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// TestU2_ColorLimitIsExact: a limit by color admits requests that its marker
// gives this color, charges nothing otherwise, and its spans are exact.
func TestU2_ColorLimitIsExact(t *testing.T) {
	rnd := rand.New(rand.NewPCG(47, 48))
	for range cases.Count(5_000, 500_000) {
		c := &ColorLimit{anyThreeColor(rnd), Color(rnd.IntN(3))}
		clock := jumpingClock(rnd, min(max(c.committed.period/c.committed.count, 1), 1<<40))
		var s, marked ColorState
		for range 12 {
			now, n := clock()<<c.shift, rnd.Int64N(6)
			was, admitted := s, s
			color := c.Mark(&marked, now, n, Green)
			_, v := c.Decide(&s, now, n)
			_, ok := c.Admit(&admitted, now, n)
			require.Equal(t, color <= c.Pass || n == 0, v.Allowed)
			require.Equal(t, v.Allowed, ok)
			if color > c.Pass && n > 0 {
				require.Equal(t, was, s)
				marked = s
				requireLater(t, c, was, now, n, v)
			}
			admitted.color, marked.color = s.color, s.color
			require.Equal(t, s, marked)
			require.Equal(t, s, admitted)
			requireRemaining(t, c, s, now, v)
		}
	}
}

// requireLater checks when n units that were denied are admitted.
func requireLater(t *testing.T, c *ColorLimit, s ColorState, now, n int64, v Verdict) {
	t.Helper()
	at := func(after int64) bool {
		later := s
		_, v := c.Decide(&later, now+after, n)
		return v.Allowed
	}
	if v.Never {
		require.Zero(t, v.RetryAfter)
		require.False(t, at(year))
		return
	}
	require.True(t, at(v.RetryAfter), "at RetryAfter")
	require.False(t, at(v.RetryAfter-1), "before")
}

// requireRemaining checks how many single units pass now, and when one more.
func requireRemaining(t *testing.T, c *ColorLimit, s ColorState, now int64, v Verdict) {
	t.Helper()
	if c.Pass == Red {
		return
	}
	left := func(after int64) int64 {
		later := s
		_, v := c.Decide(&later, now+after, 0)
		return v.Remaining
	}
	require.Equal(t, v.Remaining, left(0))
	if v.Remaining == v.Limit {
		require.Zero(t, v.NextAfter)
		return
	}
	require.Equal(t, v.Remaining, left(v.NextAfter-1))
	require.Greater(t, left(v.NextAfter), v.Remaining)
	require.Equal(t, v.Limit, left(v.ResetAfter))
}

// TestW2_ColorRefundsMintNothing: charges are settled and canceled by limits of
// two colors over the same marker. The units that are kept stay within the
// bounds of each color.
func TestW2_ColorRefundsMintNothing(t *testing.T) {
	ten := per(10, time.Second)
	markers := []*ThreeColor{
		must(NewSRTCM(ten, 3, 2)), must(NewTRTCM(ten, 3, per(15, time.Second), 5)), must(NewRFC4115(ten, 3, per(5, time.Second), 2)),
	}
	n := cases.Count(5_000, 500_000)
	rnd := rand.New(rand.NewPCG(49, 50))
	for i := range n {
		m := markers[i%len(markers)]
		limits := []*ColorLimit{{m, Green}, {m, Yellow}}
		now := ticks(time.Hour)
		var s ColorState
		var all []lent
		for range 30 {
			now += rnd.Int64N(3) / 2 * rnd.Int64N(int64(200*time.Millisecond)) * tick
			c := limits[rnd.IntN(2)]
			if i := rnd.IntN(len(all) + 1); i < len(all) && rnd.IntN(2) == 0 {
				l, actual := &all[i], rnd.Int64N(4)*rnd.Int64N(3)
				l.kept = min(l.kept, actual)
				if actual > l.N {
					if _, cut := c.ForceCharge(&s, l.Charge, now, actual-l.N); cut {
						for j := range all { // none can be refunded any more
							all[j].mark = -1
						}
					}
				} else if l.mark >= 0 {
					c.Refund(&s, l.Charge, now, l.N-actual, 0)
				}
				l.N = actual
				continue
			}
			n := 1 + rnd.Int64N(3)
			if _, v := c.Decide(&s, now, n); v.Allowed {
				all = append(all, lent{c.Charge(&s, now, n, v.Delay), 0, now, n})
			}
		}
		var calls []colored
		for _, l := range all {
			calls = append(calls, colored{l.At, l.kept, Color(l.A)})
		}
		requireColors(t, m, calls)
	}
	t.Logf("W2: %d sequences that charge, settle and cancel", n)
}

// TestColorSettleBeyondWhatABucketOwes: when a charge exceeds the largest debt
// of a bucket, the cut is reported.
func TestColorSettleBeyondWhatABucketOwes(t *testing.T) {
	one := per(1, time.Second)
	for name, c := range map[string]*ColorLimit{
		"srTCM":    {must(NewSRTCM(one, 5, 0)), Green},
		"excess":   {must(NewSRTCM(one, 0, 5)), Yellow},
		"trTCM":    {must(NewTRTCM(one, 5, per(2, time.Second), 5)), Green},
		"RFC 4115": {must(NewRFC4115(one, 0, one, 5)), Yellow},
	} {
		now := ticks(time.Hour)
		var s ColorState
		var charges [20]Charge
		for i := range charges {
			_, v := c.Decide(&s, now, 5)
			require.True(t, v.Allowed, name)
			charges[i] = c.Charge(&s, now, 5, v.Delay)
			c.Refund(&s, charges[i], now, 5, 0)
			charges[i].N = 0
		}
		cuts := 0
		for i := range charges {
			if _, cut := c.ForceCharge(&s, charges[i], now, 5); cut {
				cuts++
			}
		}
		require.Equal(t, 16, cuts, "%s: a bucket has a debt of four times its size", name)
	}
}

// TestColorErrors names the field and the value.
func TestColorErrors(t *testing.T) {
	r, slow := per(10, time.Second), per(1, MaxSpan)
	for want, err := range map[string]error{
		"cbs and ebs are both 0, want one of them larger":                        errOf(NewSRTCM(r, 0, 0)),
		"cir: rate: count is 0, want 1 or more (algo.DenyAll denies everything)": errOf(NewSRTCM(per(0, 1), 1, 1)),
		"ebs is -1, want 0 or more":                                              errOf(NewRFC4115(r, 1, r, -1)),
		"cbs is 0, want 1 or more":                                               errOf(NewTRTCM(r, 0, r, 1)),
		"pbs is 0, want 1 or more":                                               errOf(NewTRTCM(r, 1, r, 0)),
		"pir is 1/8760h0m0s, slower than cir, which is 10/s":                     errOf(NewTRTCM(r, 1, slow, 1)),
		"cbs is 2: at 1/8760h0m0s it takes longer than 8760h0m0s to fill":        errOf(NewSRTCM(slow, 2, 0)),
	} {
		require.EqualError(t, err, want)
	}
}

// TestColorRefundOfWhatASettlementAdded: units charged beyond the first cost are
// not refunded.
func TestColorRefundOfWhatASettlementAdded(t *testing.T) {
	c, now := &ColorLimit{must(NewRFC4115(per(1, time.Second), 5, per(1, time.Second), 0)), Green}, ticks(time.Hour)
	var s ColorState
	_, v := c.Decide(&s, now, 2)
	ch := c.Charge(&s, now, 2, v.Delay)
	c.ForceCharge(&s, ch, now, 3)
	ch.N = 5
	_, given := c.Refund(&s, ch, now, 3, 0)
	require.Zero(t, given)
	_, given = c.Refund(&s, ch, now, 5, 0)
	require.Equal(t, 2*c.committed.period, given)
}

// TestColorForcedUnitsAreSpent: units beyond a green first cost are charged where they would
// admit, so a limit that admits by either of two buckets has less remaining too.
func TestColorForcedUnitsAreSpent(t *testing.T) {
	rnd := rand.New(rand.NewPCG(51, 52))
	for range cases.Count(5_000, 500_000) {
		c := &ColorLimit{anyThreeColor(rnd), Color(rnd.IntN(2))}
		now := ticks(time.Hour)
		var s ColorState
		for range 4 {
			ch := Charge{At: now}
			if n := rnd.Int64N(4); n > 0 {
				_, v := c.Decide(&s, now, n)
				if !v.Allowed {
					continue
				}
				ch = c.Charge(&s, now, n, 0)
			}
			left, more := c.remaining(s), rnd.Int64N(6)
			if c.ForceCharge(&s, ch, now, more); Color(ch.A) != Green {
				continue
			}
			require.Equal(t, max(left-more, 0), c.remaining(s), "%+v: %d more than %d", c, more, ch.N)
		}
	}
}
