package decide

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/cases"
)

func fixed(n int64, period time.Duration) *FixedWindow {
	return must(NewFixedWindow(per(n, period), 0, false))
}

// admitted charges single units until one is denied.
func admitted(f *FixedWindow, word *int64, now int64) (n int64) {
	for n < 1000 {
		next, ok := f.Admit(*word, now, 1)
		*word = next
		if !ok {
			break
		}
		n++
	}
	return n
}

// touch treats an implausible word as a store does.
func touch(f *FixedWindow, word, now int64) int64 {
	if !f.Plausible(word, now) {
		word, _ = f.Clamp(word, now)
	}
	return word
}

// TestW2_RaisedQuotaTakesEffectAtOnce: if a quota is raised while a window
// runs, spent units stay spent, and the rest is available at once.
func TestW2_RaisedQuotaTakesEffectAtOnce(t *testing.T) {
	now := year + ticks(time.Hour)
	three := fixed(3, 24*time.Hour)
	var word int64
	require.EqualValues(t, 3, admitted(three, &word, now))
	five := fixed(5, 24*time.Hour).Succeed(three)
	require.True(t, five.Plausible(word, now))
	_, v := five.Decide(word, now, 0)
	require.EqualValues(t, 2, v.Remaining)
	require.EqualValues(t, 2, admitted(five, &word, now))

	_, v = fixed(3, 24*time.Hour).Succeed(five).Decide(word, now, 1)
	require.False(t, v.Allowed, "5 of 3 are spent")
	require.Equal(t, three.end(now)-now, v.RetryAfter)
	require.EqualValues(t, 5, admitted(five, &word, three.end(now)))
}

// TestW2_ChangedPeriodCarriesTheRunningWindow: units that were spent in the
// window that is running are spent in the one that is running under the new
// period, and in no later one.
func TestW2_ChangedPeriodCarriesTheRunningWindow(t *testing.T) {
	noon := year/ticks(24*time.Hour)*ticks(24*time.Hour) + ticks(12*time.Hour)
	day := fixed(5, 24*time.Hour)
	var word int64
	for range 3 {
		word, _ = day.Admit(word, noon, 1)
	}
	for name, c := range map[string]struct {
		quota, left int64
		period      time.Duration
	}{
		"shorter":      {5, 2, time.Minute},
		"longer":       {5, 2, 7 * 24 * time.Hour},
		"raised":       {10, 7, time.Hour},
		"lowered":      {2, 0, time.Hour},
		"another edge": {5, 2, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			f := must(NewFixedWindow(per(c.quota, c.period), ticks(time.Hour), false)).Succeed(day)
			_, v := f.Decide(word, noon, 0)
			require.Equal(t, c.left, v.Remaining)
			require.False(t, f.Plausible(word, noon))
			w := touch(f, word, noon)
			require.True(t, f.Plausible(w, noon))
			_, same := f.Decide(w, noon, 0)
			require.Equal(t, v, same)
			require.Equal(t, c.left, admitted(f, &w, noon))
			require.Equal(t, c.quota, admitted(f, &w, f.end(noon)))
			charged := word
			require.Equal(t, c.left, admitted(f, &charged, noon), "without a Clamp")
			late := word
			require.Equal(t, c.quota, admitted(f, &late, noon+ticks(7*24*time.Hour)), "not used until its window had ended")
		})
	}
}

// TestChainOfPeriods: a word is understood under any number of changes, as long
// as it weighs.
func TestChainOfPeriods(t *testing.T) {
	now := year + 1
	f := fixed(100, 30*24*time.Hour)
	var word int64
	word, _ = f.Admit(word, now, 60)
	var other int64
	for i := range 62 {
		f = fixed(100, 30*24*time.Hour+time.Duration(i+1)).Succeed(f)
		other, _ = f.Admit(other, now, 1)
	}
	_, v := f.Decide(word, now, 0)
	require.EqualValues(t, 40, v.Remaining)
	_, v = f.Decide(other, now, 0)
	require.EqualValues(t, 38, v.Remaining)
	require.EqualValues(t, 100, admitted(f, &word, now+ticks(31*24*time.Hour)))
}

// TestFixedWindowDebt: units charged beyond the quota are debt in the next
// window, up to a quota, and are refunded first.
func TestFixedWindowDebt(t *testing.T) {
	f, now := fixed(10, time.Hour), year+5
	word, v := f.Decide(0, now, 8)
	c := f.Charge(word, now, 8, v.Delay)
	word, cut := f.ForceCharge(word, c, now, 6)
	c.N += 6
	require.False(t, cut)
	require.False(t, f.Plausible(word, now), "or a later window")
	same, cut := f.Clamp(word, now)
	require.False(t, cut)
	require.Equal(t, word, same)
	_, v = f.Decide(word, now, 7)
	require.Equal(t, f.end(now)-now+f.window.by, v.RetryAfter)
	_, v = f.Decide(word, now, 6)
	require.Equal(t, f.end(now)-now, v.RetryAfter)
	next := word
	require.EqualValues(t, 6, admitted(f, &next, f.end(now)))

	less, given := f.Refund(word, c, now, 5, 0)
	require.EqualValues(t, 5, given)
	less2 := less
	require.EqualValues(t, 1, admitted(f, &less2, now))
	_, given = f.Refund(word, c, f.end(now), 5, 0)
	require.Zero(t, given, "its window has ended")
	word, given = f.Refund(less, c, now, 9, 0)
	require.EqualValues(t, 9, given)
	require.Equal(t, f.end(now), word, "no unit is left, and the time is kept")
	fresh, earlier := word, word
	require.EqualValues(t, f.quota, admitted(f, &fresh, now), "all of the window is there")
	require.Zero(t, admitted(f, &earlier, now-f.window.by), "but not of the one before: it has passed")

	word, cut = f.ForceCharge(word, c, now, 1000)
	require.True(t, cut)
	require.EqualValues(t, f.end(now)+f.window.by+f.depth, word)
}

// TestW2_FixedWindowRefundKeepsTheTime: after all units of a window were given
// back, a late reading does not find the window before.
func TestW2_FixedWindowRefundKeepsTheTime(t *testing.T) {
	f, now := fixed(3, time.Hour), year+5
	late := now - f.window.by
	word, v := f.Decide(0, now, 2)
	word, _ = f.Refund(word, f.Charge(word, now, 2, v.Delay), now, 2, 0)
	_, ok := f.Admit(word, late, 1)
	require.False(t, ok)
	require.False(t, f.Plausible(word, late-1))
	_, v = f.Decide(word, now, 0)
	require.EqualValues(t, 3, v.Remaining)
}

// TestFixedWindowRefundOfAnotherPeriod: a charge is not refunded from the count
// of another period.
func TestFixedWindowRefundOfAnotherPeriod(t *testing.T) {
	day, now := fixed(5, 24*time.Hour), year+5
	word, v := day.Decide(0, now, 3)
	c := day.Charge(word, now, 3, v.Delay)
	hour := fixed(5, time.Hour).Succeed(day)
	word = touch(hour, word, now)
	again := fixed(5, 24*time.Hour).Succeed(hour)
	word = touch(again, word, now)
	_, given := again.Refund(word, c, now, 3, 0)
	require.Zero(t, given)
}

// TestW2_FixedWindowRefundsMintNothing: charges are settled up and down and
// canceled, while the quota changes. The units that are kept stay within the
// largest quota, in each window.
func TestW2_FixedWindowRefundsMintNothing(t *testing.T) {
	n := cases.Count(20_000, 500_000)
	rnd := rand.New(rand.NewPCG(71, 72))
	for range n {
		quota := 1 + rnd.Int64N(5)
		f := fixed(quota, time.Hour)
		now := year + rnd.Int64N(f.window.by)
		largest := quota
		var all []lent
		var word, mark int64 // charges before mark cannot be refunded
		for i := range int64(30) {
			now += rnd.Int64N(3) / 2 * rnd.Int64N(f.window.by)
			switch j := rnd.IntN(len(all) + 1); {
			case rnd.IntN(8) == 0:
				f = fixed(max(quota+rnd.Int64N(3)-1, 1), time.Hour).Succeed(f)
				largest = max(largest, f.quota)
			case j < len(all) && rnd.IntN(2) == 0:
				actual, l := rnd.Int64N(3)*rnd.Int64N(2*quota+2), &all[j]
				l.kept = min(l.kept, actual)
				if actual > l.N {
					var cut bool
					if word, cut = f.ForceCharge(word, l.Charge, now, actual-l.N); cut {
						mark = i
					}
				} else if l.mark >= mark {
					word, _ = f.Refund(word, l.Charge, now, l.N-actual, 0)
				}
				l.N = actual
			default:
				n := 1 + rnd.Int64N(f.quota)
				next, v := f.Decide(word, now, n)
				if word = next; v.Allowed {
					all = append(all, lent{f.Charge(word, now, n, v.Delay), i, now, n})
				}
			}
		}
		kept := map[int64]int64{}
		for _, l := range all {
			kept[f.end(l.at)] += l.kept
			require.LessOrEqual(t, kept[f.end(l.at)], largest, "%+v", all)
		}
	}
	t.Logf("W2: %d sequences that charge, settle and cancel", n)
}

// TestSpread: keys have edges of their own at 1024 places in the period, each a
// whole step, and the empty key none.
func TestSpread(t *testing.T) {
	f := must(NewFixedWindow(per(5, time.Hour), 0, true))
	rnd := rand.New(rand.NewPCG(73, 74))
	places := map[int64]bool{}
	var sum float64
	for range 20_000 {
		p := f.Phase(rnd.Uint64())
		places[p] = true
		sum += float64(p) / 20_000
		require.Zero(t, p%f.unit)
		require.GreaterOrEqual(t, p, int64(0))
		require.Less(t, p, f.window.by)
	}
	require.Len(t, places, 1024)
	require.InEpsilon(t, 0.5, sum/float64(f.window.by), 0.02)
	require.Zero(t, f.Phase(0))
	require.Zero(t, fixed(5, time.Hour).Phase(12345))
}

// TestSpreadPeriodChange: where keys have phases, a word of the earlier period
// weighs at least until its own window ends, and at most one new one longer.
func TestSpreadPeriodChange(t *testing.T) {
	rnd := rand.New(rand.NewPCG(75, 76))
	for range cases.Count(5_000, 100_000) {
		id, now := rnd.Uint64(), year+rnd.Int64N(ticks(24*time.Hour))
		day := must(NewFixedWindow(per(5, 24*time.Hour), 0, true))
		hour := must(NewFixedWindow(per(5, time.Hour), 0, true)).Succeed(day)
		word, ok := day.Admit(0, now+day.Phase(id), 3)
		require.True(t, ok)
		ends := day.end(now+day.Phase(id)) - day.Phase(id)
		for later := now; later < ends; later += ticks(time.Hour) {
			_, v := hour.Decide(word, later+hour.Phase(id), 0)
			require.EqualValues(t, 2, v.Remaining)
		}
		_, v := hour.Decide(word, ends+hour.window.by+day.window.by+hour.Phase(id), 0)
		require.EqualValues(t, 5, v.Remaining)
	}
}

// TestEndOfTheClockOfFixedWindows: requests that cannot be charged any more
// are denied.
func TestEndOfTheClockOfFixedWindows(t *testing.T) {
	f := fixed(10, time.Second)
	for _, now := range []int64{1<<63 - 64, 1<<63 - 1 - f.window.by, 1<<63 - 1 - 2*f.window.by} {
		var word int64
		require.LessOrEqual(t, admitted(f, &word, now), int64(10))
	}
}

func BenchmarkFixedWindow(b *testing.B) {
	f := fixed(1e9, time.Hour)
	b.Run("Admit", func(b *testing.B) {
		var word int64
		for i := range int64(b.N) {
			word, _ = f.Admit(word, year+i, 1)
		}
	})
}
