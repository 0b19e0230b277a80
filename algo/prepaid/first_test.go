package prepaid_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/algo/marker"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// Without credits First is its plan.
func TestFirstConformance(t *testing.T) {
	algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
		plan, err := algo.NewTokenBucket(r, opts...)
		if err != nil {
			return nil, err
		}
		return prepaid.First(plan, prepaid.NewCredits()), nil
	}, algotest.Bound{Units: algotest.BurstPlusRate})
}

func TestFirstSplitsAndGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan, credits := bucket(algo.PerSecond(1), algo.Burst(10)), prepaid.NewCredits()
		l := prepaid.First(plan, credits)
		require.NoError(t, credits.TopUp("a", 20))
		require.Equal(t, int64(30), peek(t, l, "a").Remaining)

		lease := must(t, l, "a", 25)
		require.True(t, lease.Allowed)
		require.Equal(t, int64(5), lease.Remaining)
		require.Zero(t, peek(t, plan, "a").Remaining, "the plan first")
		require.Equal(t, int64(5), credits.Balance("a"))

		lease.Settle(12)
		require.Equal(t, int64(18), credits.Balance("a"), "credits come back first")
		require.Zero(t, peek(t, plan, "a").Remaining)
		lease.Settle(4)
		require.Equal(t, int64(20), credits.Balance("a"))
		require.Equal(t, int64(6), peek(t, plan, "a").Remaining)
		lease.Settle(30)
		require.Zero(t, credits.Balance("a"), "credits pay the units above the charge")
		require.Equal(t, 10*time.Second, peek(t, plan, "a").ResetAfter)
		lease.Settle(50)
		require.Equal(t, int64(-20), credits.Balance("a"), "below zero too")
		require.Equal(t, 10*time.Second, peek(t, plan, "a").ResetAfter, "the plan owes nothing")
		lease.Release(algo.Canceled)
		require.Equal(t, int64(20), credits.Balance("a"))
		require.Equal(t, int64(10), peek(t, plan, "a").Remaining)
		lease.Release(algo.Canceled)
		lease.Settle(1)
		require.Equal(t, int64(20), credits.Balance("a"), "once")
	})
}

// What is settled above the request is charged: to what the plan has left, and then to credits,
// below zero.
func TestFirstServesWhatWasPaid(t *testing.T) {
	for n := range int64(2) {
		synctest.Test(t, func(t *testing.T) {
			plan, credits := bucket(algo.PerHour(100)), prepaid.NewCredits()
			require.NoError(t, credits.TopUp("k", 1000))
			l, served := prepaid.First(plan, credits), int64(0)
			for range 1000 {
				if !allows(l, "k", 1) {
					break
				}
				lease := must(t, l, "k", 9*n)
				if !lease.Allowed {
					break
				}
				lease.Settle(1000)
				lease.Release(algo.Succeeded)
				served += 1001
			}
			require.LessOrEqual(t, served, 1000-min(credits.Balance("k"), 0)+2*100)
		})
	}
}

// A key in debt pays for what it uses beyond a request that its plan has paid.
func TestFirstBelowZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan, credits := bucket(algo.PerSecond(1)), prepaid.NewCredits()
		l := prepaid.First(plan, credits)
		require.NoError(t, credits.TopUp("k", 10))
		first := must(t, l, "k", 1)
		first.Settle(100)
		debt := credits.Balance("k")
		require.Negative(t, debt)
		time.Sleep(time.Hour)
		second := must(t, l, "k", 1)
		second.Settle(100)
		require.LessOrEqual(t, credits.Balance("k"), debt-98)
	})
}

// An hour later the plan has refilled: its part weighs nothing, credits do not drain.
func TestFirstGivesCreditsBackHoweverLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan, credits := bucket(algo.PerSecond(1), algo.Burst(10)), prepaid.NewCredits()
		require.NoError(t, credits.TopUp("", 5))
		l := prepaid.First(plan, credits)
		lease := must(t, l, "", 15)
		time.Sleep(time.Hour)
		lease.Release(algo.Canceled)
		require.Equal(t, int64(15), peek(t, l, "").Remaining)
	})
}

func TestFirstDenials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		credits := prepaid.NewCredits()
		l := prepaid.First(bucket(algo.PerSecond(1), algo.Burst(10)), credits)
		d := must(t, l, "k", 11).Decision
		require.Equal(t, algo.Never, d.Reason)
		require.NoError(t, credits.TopUp("k", 4))
		d = must(t, l, "k", 15).Decision
		require.Equal(t, algo.Never, d.Reason, "the plan can never pay the other 11")
		require.True(t, allows(l, "k", 8))
		d = must(t, l, "k", 12).Decision
		require.Equal(t, algo.Quota, d.Reason)
		require.Equal(t, 6*time.Second, d.RetryAfter, "8 of the plan, 4 of credits")
		require.Equal(t, int64(14), d.Limit)
		require.Equal(t, int64(6), d.Remaining)
		require.Equal(t, int64(4), credits.Balance("k"), "nothing is charged")
		_, err := l.Acquire(t.Context(), "k", -1)
		require.ErrorIs(t, err, algo.ErrCost)
		require.Panics(t, func() { prepaid.First(nil, credits) })
		require.Panics(t, func() { prepaid.First(bucket(algo.PerSecond(1)), nil) })
	})
}

// A key that is banned spends no credits.
func TestFirstBanned(t *testing.T) {
	credits := prepaid.NewCredits()
	require.NoError(t, credits.TopUp("k", 4))
	plan := algo.DenyAll()
	require.False(t, allows(prepaid.First(plan, credits), "k", 1))
	require.Equal(t, int64(4), credits.Balance("k"))
}

// A plan that delays pays the units that credits lack, with a Delay.
func TestFirstDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		credits := prepaid.NewCredits()
		l := prepaid.First(bucket(algo.PerSecond(1), algo.Burst(2), algo.MaxWait(3*time.Second)), credits)
		require.NoError(t, credits.TopUp("", 1))
		lease := must(t, l, "", 6)
		require.True(t, lease.Allowed)
		require.Equal(t, 3*time.Second, lease.Delay)
		require.Zero(t, credits.Balance(""))
		require.False(t, allows(l, "", 1))
	})
}

// The first reservation is of the plan, later ones of credits; the rest comes back to
// credits.
func TestFirstUnderAMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan, credits := bucket(algo.PerSecond(1), algo.Burst(10)), prepaid.NewCredits()
		require.NoError(t, credits.TopUp("a", 100))
		m, err := meter.Start(t.Context(), prepaid.First(plan, credits), "a", 5, 20)
		require.NoError(t, err)
		for range 9 {
			d, err := m.Reserve(t.Context(), 3)
			require.NoError(t, err)
			require.True(t, d.Allowed)
			m.Use(3)
		}
		m.Close()
		require.Equal(t, int64(100-17), credits.Balance("a"), "27 less the 10 of the plan")
		require.Zero(t, peek(t, plan, "a").Remaining)
	})
}

// prepaidModel is a plan and a balance, decided one after another.
type prepaidModel struct {
	plan    algo.Limiter
	balance int64
}

// acquire spends the units of the plan one by one, then credits.
func (m *prepaidModel) acquire(t require.TestingT, n int64) (lease algo.Lease, paid int64, ok bool) {
	if left := peek(t, m.plan, "").Remaining; n > left {
		paid = n - left
	}
	if paid > m.balance {
		return lease, 0, false
	}
	m.balance -= paid
	return must(t, m.plan, "", n-paid), paid, true
}

// TestW2_FirstAndAModel: over random charges, top-ups, settlements and cancellations
// First has the same units as its plan and its credits spent in order, RetryAfter is
// exact, and the admissions stay within the sum of the bounds.
func TestW2_FirstAndAModel(t *testing.T) {
	checks(t, "W2: %d sequences of First")
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			rate, burst := algo.PerSecond(rapid.Int64Range(1, 9).Draw(t, "rate")), rapid.Int64Range(1, 9).Draw(t, "burst")
			credits := prepaid.NewCredits()
			l := prepaid.First(bucket(rate, algo.Burst(burst)), credits)
			m := prepaidModel{plan: bucket(rate, algo.Burst(burst))}
			start, admitted, bought := time.Now(), int64(0), int64(0)
			for range rapid.IntRange(1, 30).Draw(t, "steps") {
				time.Sleep(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "pause")))
				n := rapid.Int64Range(0, 12).Draw(t, "n")
				if rapid.IntRange(0, 3).Draw(t, "what") == 0 {
					require.NoError(t, credits.TopUp("", n))
					m.balance, bought = m.balance+n, bought+n
					continue
				}
				admitted += stepOfFirst(t, l, &m, n)
				require.LessOrEqual(t, admitted, algotest.BurstPlusRate(rate, time.Since(start))+burst-rate.Count+bought)
				require.Equal(t, m.balance, credits.Balance(""))
				require.Equal(t, peek(t, m.plan, "").Remaining+max(m.balance, 0), peek(t, l, "").Remaining)
			}
		})
	})
}

// stepOfFirst charges n units, perhaps gives some back, and returns how many stay.
func stepOfFirst(t *rapid.T, l algo.Limiter, m *prepaidModel, n int64) int64 {
	lease := must(t, l, "", n)
	want, paid, ok := m.acquire(t, n)
	require.Equal(t, ok, lease.Allowed)
	if !ok {
		if lease.Reason == algo.Never {
			return 0
		}
		time.Sleep(lease.RetryAfter - 1)
		early := must(t, l, "", n)
		require.False(t, early.Allowed, "a nanosecond early")
		time.Sleep(time.Nanosecond)
		return stepOfFirst(t, l, m, n)
	}
	less := rapid.Int64Range(0, n).Draw(t, "less")
	back := min(less, paid)
	m.balance += back
	before := peek(t, m.plan, "").Remaining
	want.Settle(n - paid - (less - back))
	lease.Settle(n - less)
	return n - back - (peek(t, m.plan, "").Remaining - before)
}

// prepaidCall is one call in a history.
type prepaidCall struct {
	n    int64
	back bool // a refund or a top-up
}

// TestL1_First: whatever the order of four goroutines that charge, cancel and top up,
// First under a frozen clock admits as one counter of units. It may deny because of a
// charge that is about to be given back.
func TestL1_First(t *testing.T) {
	algotest.Interleave(t)
	model := porcupine.Model{
		Init: func() any { return int64(7) },
		Step: func(state, input, output any) (bool, any) {
			left, in, out := state.(int64), input.(prepaidCall), output.(algo.Decision)
			switch {
			case in.back:
				return true, left + in.n
			case out.Allowed:
				return in.n <= left, left - in.n
			}
			return true, left
		},
	}
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(cases.Count(300, 5000)) {
			credits := prepaid.NewCredits()
			require.NoError(t, credits.TopUp("k", 4))
			history := prepaidHistory(t, prepaid.First(bucket(algo.PerSecond(3)), credits), credits, seed)
			require.True(t, porcupine.CheckOperations(model, history), "seed %d", seed)
		}
	})
}

func prepaidHistory(t *testing.T, l algo.Limiter, credits *prepaid.Credits, seed uint64) (all []porcupine.Operation) {
	var clock atomic.Int64
	var histories [4][]porcupine.Operation
	var group sync.WaitGroup
	for c := range histories {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(c)))
			call := func(in prepaidCall, f func() algo.Decision) {
				o := porcupine.Operation{ClientId: c, Input: in, Call: clock.Add(1)}
				o.Output = f()
				o.Return = clock.Add(1)
				histories[c] = append(histories[c], o)
			}
			for range 8 {
				n := 1 + rnd.Int64N(3)
				if rnd.IntN(5) == 0 {
					call(prepaidCall{1, true}, func() algo.Decision { require.NoError(t, credits.TopUp("k", 1)); return algo.Decision{} })
					continue
				}
				var lease algo.Lease
				call(prepaidCall{n, false}, func() algo.Decision { lease, _ = l.Acquire(t.Context(), "k", n); return lease.Decision })
				if lease.Allowed && rnd.IntN(3) == 0 {
					call(prepaidCall{n, true}, func() algo.Decision { lease.Release(algo.Canceled); return algo.Decision{} })
				}
			}
		})
	}
	group.Wait()
	for _, h := range histories {
		all = append(all, h...)
	}
	return all
}

// TestFirstOverFirst: limits over each other's plans and credits wait for nothing, and give
// everything back.
func TestFirstOverFirst(t *testing.T) {
	a, b := prepaid.NewCredits(), prepaid.NewCredits()
	plan := func() algo.Limiter { return bucket(algo.PerHour(1000)) }
	for _, c := range []*prepaid.Credits{a, b} {
		require.NoError(t, c.TopUp("k", 1000))
	}
	var group sync.WaitGroup
	for _, l := range []algo.Limiter{
		prepaid.First(prepaid.First(plan(), a), b), prepaid.First(prepaid.First(plan(), b), a), prepaid.First(prepaid.First(plan(), a), a), prepaid.First(a, a),
		prepaid.First(algo.All(plan(), algo.NewSwitch(algo.Shadow(b))), a), prepaid.First(algo.All(plan(), a), b),
	} {
		for range 2 {
			group.Go(func() {
				for range 1000 {
					lease := must(t, l, "k", 2)
					lease.Release(algo.Canceled)
				}
			})
		}
	}
	group.Wait()
	for _, c := range []*prepaid.Credits{a, b} {
		require.EqualValues(t, 1000, c.Balance("k"))
	}
}

func TestFirstAllocations(t *testing.T) {
	credits := prepaid.NewCredits()
	require.NoError(t, credits.TopUp("k", 1<<40))
	l := prepaid.First(bucket(algo.PerSecond(1)), credits)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		lease := must(t, l, "k", 2)
		lease.Settle(1)
		lease.Release(algo.Succeeded)
	}), 4.0)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		lease := must(t, l, "other", 1)
		lease.Release(algo.Succeeded)
	}), "without credits")
}

// Units that credits pay are no denial for a ban around First; units that they lack are one.
// A banned plan spends no credits.
func TestFirstAndABan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		credits := prepaid.NewCredits()
		first := prepaid.First(bucket(algo.PerHour(1), algo.Burst(2)), credits)
		ban := algo.Must(guard.NewBan(first, algo.PerMinute(2), 24*time.Hour, 48*time.Hour))
		require.NoError(t, credits.TopUp("a", 19))
		for range 10 {
			require.True(t, must(t, ban, "a", 2).Allowed)
		}
		require.Equal(t, int64(1), credits.Balance("a"))
		require.NotEqual(t, algo.Banned, must(t, ban, "a", 2).Reason)
		require.Equal(t, algo.Banned, must(t, ban, "a", 2).Reason)
		require.False(t, allows(prepaid.First(ban, credits), "a", 1), "a banned key spends no credits")
	})
}

// TestFirstStatesNoCreditsOfABannedKey: credits pay nothing for a key that is banned, or denied
// altogether, so that they do not remain either. They pay for others as before.
func TestFirstStatesNoCreditsOfABannedKey(t *testing.T) {
	ban := algo.Must(guard.NewBan(bucket(algo.PerHour(2)), algo.PerMinute(1), time.Minute, time.Hour))
	for _, n := range []int64{2, 1} {
		must(t, ban, "k", n)
	}
	for name, plan := range map[string]algo.Limiter{"banned": ban, "denied": algo.DenyAll()} {
		credits := prepaid.NewCredits()
		require.NoError(t, credits.TopUp("k", 5))
		l := prepaid.First(plan, credits)
		d := must(t, l, "k", 1).Decision
		require.Equal(t, algo.Banned, d.Reason, name)
		require.Zero(t, d.Remaining, name)
		require.Equal(t, must(t, plan, "k", 1).Limit, d.Limit, name)
		require.EqualValues(t, 5, credits.Balance("k"))
		both := must(t, algo.All(algo.DenyAll(), l), "k", 1)
		require.Zero(t, both.Parts()[1].Remaining, name)
	}
}

// Credits pay for units, not for capacity that the service lacks.
func TestCreditsPayForNoMissingSlot(t *testing.T) {
	credits := prepaid.NewCredits()
	require.NoError(t, credits.TopUp("", 5))
	slots := algo.Must(adaptive.New(adaptive.Fixed(1)))
	l := prepaid.First(algo.All(bucket(algo.PerHour(9)), slots), credits)
	held := must(t, l, "", 1)
	require.True(t, held.Allowed)
	require.Equal(t, algo.Overload, must(t, l, "", 1).Reason)
	require.EqualValues(t, 5, credits.Balance(""))
}

// What is settled above the request is the plan's as far as it has some left.
func TestFirstSettlesToThePlanFirst(t *testing.T) {
	for _, n := range []int64{0, 3} {
		plan, credits := bucket(algo.PerDay(10)), prepaid.NewCredits()
		require.NoError(t, credits.TopUp("a", 20))
		lease := must(t, prepaid.First(plan, credits), "a", n)
		lease.Settle(8)
		require.EqualValues(t, 20, credits.Balance("a"))
		lease.Settle(15)
		require.EqualValues(t, 15, credits.Balance("a"))
		require.Zero(t, peek(t, plan, "a").Remaining)
		lease.Settle(4)
		require.EqualValues(t, 20, credits.Balance("a"))
		require.EqualValues(t, 6, peek(t, plan, "a").Remaining)
	}
}

// A marker has units in several buckets, of which one pays a request. What it cannot pay in one piece
// is not impossible: credits pay all of it, or as much as they have.
func TestFirstOverAMarker(t *testing.T) {
	for _, c := range []struct{ spent, n, topUp, paid int64 }{
		{0, 4, 20, 0}, // the plan has 2 and 4
		{0, 5, 20, 5},
		{0, 5, 3, 3}, // and the plan 2
		{1, 5, 20, 5},
		{1, 6, 20, 6}, // 1 beyond both, and 5 are in two buckets
		{1, 6, 3, 3},
		{2, 7, 20, 3},
		{0, 9, 4, 0}, // both together do not suffice
		{0, 9, 5, 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			plan := marker.Limit(algo.Must(marker.NewSRTCM(algo.PerHour(4), 2, 4)), marker.Yellow)
			credits := prepaid.NewCredits()
			require.NoError(t, credits.TopUp("k", c.topUp))
			for range c.spent {
				must(t, plan, "k", 1)
			}
			l := prepaid.First(plan, credits)
			before := algo.Must(algo.Peek(t.Context(), plan, "k", 0)).Remaining
			look := algo.Must(algo.Peek(t.Context(), l, "k", c.n))
			lease := must(t, l, "k", c.n)
			pays := c.paid > 0 || c.n <= 4
			require.Equal(t, pays, lease.Allowed, "%+v", c)
			require.Equal(t, pays, look.Allowed, "%+v", c)
			require.Equal(t, c.topUp-c.paid, credits.Balance("k"), "%+v", c)
			lease.Release(algo.Canceled)
			require.Equal(t, c.topUp, credits.Balance("k"), "%+v", c)
			require.Equal(t, before, algo.Must(algo.Peek(t.Context(), plan, "k", 0)).Remaining, "%+v", c)
		})
	}
}
