package decide

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// bucketOf is one bucket with its account of refunds, as a store keeps it.
type bucketOf struct {
	*GCRA
	tat, refunded int64
	invalid       int64 // charges with a smaller mark cannot be refunded
}

// lent is an admission that may still be settled.
type lent struct {
	Charge
	mark, at, kept int64
}

func (b *bucketOf) charge(now, n int64) (l lent, ok bool) {
	next, v := b.Decide(b.tat, now, n)
	if !v.Allowed {
		return l, false
	}
	b.tat = next
	return lent{b.Charge(next, now, n, v.Delay), b.refunded, now + v.Delay, n}, true
}

// settle makes l cost actual units at now.
func (b *bucketOf) settle(l *lent, now, actual int64) {
	l.kept = min(l.kept, actual)
	if actual > l.N {
		next, cut := b.ForceCharge(b.tat, l.Charge, now, actual-l.N)
		if b.tat = next; cut {
			b.invalid = b.refunded + 1
			b.refunded++
		}
	} else if l.mark >= b.invalid {
		next, given := b.Refund(b.tat, l.Charge, now, l.N-actual, b.refunded-l.mark)
		b.tat = next
		b.refunded += given
	}
	l.N = actual
}

// TestW1_RefundsMintNothing: charges are settled up and down and canceled at any
// time and in any order. The units that are never refunded stay within the
// bound.
func TestW1_RefundsMintNothing(t *testing.T) {
	n := cases.Count(20_000, 500_000)
	rnd := rand.New(rand.NewPCG(61, 62))
	for range n {
		g := must(NewGCRA(anyRateOf(rnd), 1+rnd.Int64N(4), 0))
		b := &bucketOf{GCRA: g}
		now := int64(1 << 40)
		var all []lent
		for range 30 {
			now += rnd.Int64N(3) / 2 * rnd.Int64N(3*g.emission)
			if i := rnd.IntN(len(all) + 1); i < len(all) && rnd.IntN(2) == 0 {
				b.settle(&all[i], now, rnd.Int64N(3)*rnd.Int64N(2*g.burst+2))
				continue
			}
			if l, ok := b.charge(now, 1+rnd.Int64N(g.burst)); ok {
				all = append(all, l)
			}
		}
		var kept []admission
		for _, l := range all {
			kept = append(kept, admission{l.at, l.kept})
		}
		requireBound(t, g, kept)
	}
	t.Logf("W1: %d sequences that charge, settle and cancel", n)
}

// TestW1_BurstChangesMintNothing: the same while the burst is raised and lowered
// again, by so little that the smaller bucket may have the same debt. Debt that
// fit under the larger burst stays.
func TestW1_BurstChangesMintNothing(t *testing.T) {
	n := cases.Count(20_000, 500_000)
	rnd := rand.New(rand.NewPCG(67, 68))
	for range n {
		r, burst, more := anyRateOf(rnd), 2+rnd.Int64N(3), 1+rnd.Int64N(2)
		g := must(NewGCRA(r, burst, 0))
		largest := must(NewGCRA(r, burst+more, 0))
		b := &bucketOf{GCRA: g}
		now := int64(1 << 40)
		var all []lent
		for range 40 {
			now += rnd.Int64N(3) / 2 * rnd.Int64N(3*g.emission)
			switch i := rnd.IntN(len(all) + 1); {
			case rnd.IntN(4) == 0:
				b.GCRA = must(NewGCRA(r, burst+more*rnd.Int64N(2), 0)).Succeed(b.GCRA, now)
			case i < len(all) && rnd.IntN(2) == 0:
				b.clamp(now)
				b.settle(&all[i], now, rnd.Int64N(3)*rnd.Int64N(2*burst+2))
			default:
				b.clamp(now)
				if l, ok := b.charge(now, 1+rnd.Int64N(b.burst)); ok {
					all = append(all, l)
				}
			}
		}
		var kept []admission
		for _, l := range all {
			kept = append(kept, admission{l.at, l.kept})
		}
		requireBound(t, largest, kept)
	}
	t.Logf("W1: %d sequences that charge, settle, cancel and change the burst", n)
}

// clamp treats an implausible word as a store does.
func (b *bucketOf) clamp(now int64) {
	next, cut := b.Clamp(b.tat, now)
	if b.tat = next; cut {
		b.refunded++
		b.invalid = b.refunded
	}
}

// anyRateOf is a rate at which a burst of a few units fits.
func anyRateOf(rnd *rand.Rand) Rate {
	return per(1+rnd.Int64N(100), time.Duration(1+rnd.Int64N(3600))*time.Second)
}

// TestW1_LateRefundMintsNothing: the drained part of a charge is not refunded,
// neither before its delayed work starts nor after.
func TestW1_LateRefundMintsNothing(t *testing.T) {
	second := ticks(time.Second)
	for _, after := range []time.Duration{2 * time.Second, 4500 * time.Millisecond} {
		b := &bucketOf{GCRA: must(NewGCRA(per(1, time.Second), 1, 4*time.Second))}
		now := 100 * second
		l, ok := b.charge(now, 5)
		require.True(t, ok)
		now += ticks(after)
		_, ok = b.charge(now, 2)
		require.True(t, ok)
		b.settle(&l, now, 0)
		_, v := b.Decide(b.tat, now, 4)
		require.False(t, v.Allowed, "6 at one instant, where 5 fit")
		_, v = b.Decide(b.tat, now, 3)
		require.True(t, v.Allowed)
	}
}

// TestW1_ExactRefund: a charge that is canceled at once leaves nothing, whatever
// was charged before; so do two, in either order.
func TestW1_ExactRefund(t *testing.T) {
	rnd := rand.New(rand.NewPCG(63, 64))
	for range cases.Count(20_000, 500_000) {
		g := anyGCRA(rnd)
		now := int64(1<<40) + rnd.Int64N(1<<40)
		before := now + rnd.Int64N(g.depth+1)
		b := &bucketOf{GCRA: g, tat: before}
		first, ok := b.charge(now, 1+rnd.Int64N(min(g.maxCost, 5)))
		if !ok {
			continue
		}
		second, two := b.charge(now, 1+rnd.Int64N(min(g.maxCost, 5)))
		b.settle(&first, now, 0)
		if two {
			b.settle(&second, now, 0)
		}
		require.Equal(t, before, b.tat)
		b.settle(&first, now, 0)
		require.Equal(t, before, b.tat, "given back once")
	}
}

// TestForceChargeIsBounded: debt stays plausible, and a cut is reported.
func TestForceChargeIsBounded(t *testing.T) {
	rnd := rand.New(rand.NewPCG(65, 66))
	for range cases.Count(20_000, 500_000) {
		g := anyGCRA(rnd)
		now := int64(1<<40) + rnd.Int64N(1<<40)
		tat := now - 10 + rnd.Int64N(g.maxDebt+10)
		n := 1 + rnd.Int64N(1<<rnd.IntN(62))
		next, cut := g.ForceCharge(tat, Charge{}, now, n)
		require.True(t, g.Plausible(next, now))
		require.GreaterOrEqual(t, next, max(tat, now))
		require.Equal(t, n > (g.maxDebt-debt(tat, now))/g.emission, cut)
		if !cut {
			require.Equal(t, max(tat, now)+n*g.emission, next)
		}
		_, cut = g.ForceCharge(now, Charge{A: 0, B: g.emission + 1}, now, 1)
		require.True(t, cut, "a unit would be refunded for more than it was charged")
	}
}

// waiting are the buckets that delay, by their units that may start at once.
var waiting = map[string]*GCRA{
	"token bucket":     must(NewGCRA(per(10, time.Second), 3, time.Second)),
	"pacer":            must(NewPacer(per(10, time.Second), 0, Unbounded, time.Second)),
	"pacer with slack": must(NewPacer(per(10, time.Second), 2, 10, Unbounded)),
	"nginx":            must(NewNginx(per(10, time.Second), 9, 1)),
	"smooth bursty":    must(NewSmoothBursty(per(10, time.Second), 2, per(10, time.Second), time.Second)),
}

// queued is an admission that starts at an instant.
type queued struct {
	lent
	start, cost int64
}

// TestW2_WaitRefundsMintNothing: some admissions are settled and canceled after
// all later ones have started, and some decisions are at late readings of the
// clock. The units that are kept start within the bound.
func TestW2_WaitRefundsMintNothing(t *testing.T) {
	for name, g := range waiting {
		t.Run(name, func(t *testing.T) {
			n := cases.Count(1_000, 50_000)
			for trial := range n {
				requireQueue(t, g, queue(g, rand.New(rand.NewPCG(61, uint64(trial)))))
			}
			t.Logf("W2: %d queues that charge, settle and cancel", n)
		})
	}
}

// queue returns the admissions to one bucket.
func queue(g *GCRA, rnd *rand.Rand) (all []queued) {
	second := ticks(time.Second)
	b, now := &bucketOf{GCRA: g}, ticks(time.Hour)
	for range 40 {
		now += rnd.Int64N(3) / 2 * rnd.Int64N(second)
		cost := 1 + rnd.Int64N(3)
		if l, ok := b.charge(now-rnd.Int64N(3)/2*rnd.Int64N(2*second), cost); ok {
			q := queued{l, l.At, cost}
			if b.tat-g.depth > l.At && !g.forward { // delayed: it starts when its last tick fits
				q.start = l.A - g.depth
			}
			all = append(all, q)
		}
		for range rnd.IntN(4) {
			i := rnd.IntN(len(all) + 1)
			if i < len(all) && !slices.ContainsFunc(all[i+1:], func(q queued) bool { return q.start > now }) {
				b.settle(&all[i].lent, now, rnd.Int64N(2)*rnd.Int64N(4))
			}
		}
	}
	return all
}

// requireQueue checks every run of starts.
func requireQueue(t *testing.T, g *GCRA, all []queued) {
	t.Helper()
	slices.SortFunc(all, func(a, b queued) int { return cmp.Compare(a.start, b.start) })
	for i, first := range all {
		var sum, largest int64
		for _, q := range all[i:] {
			if q.kept == 0 {
				continue
			}
			sum, largest = sum+q.kept*g.emission, max(largest, q.cost*g.emission)
			most := max(g.depth, largest)
			if g.forward {
				most = g.depth + largest
			}
			require.LessOrEqual(t, sum, most+q.start-first.start, "%+v", all)
		}
	}
}

// TestW1_RefundsCountOneAnother: a charge weighs less after an earlier one was
// given back, because it drains sooner.
func TestW1_RefundsCountOneAnother(t *testing.T) {
	b := &bucketOf{GCRA: must(NewGCRA(per(1, time.Second), 10, 0))}
	second := ticks(time.Second)
	now := 100 * second
	first, _ := b.charge(now, 5)
	second5, _ := b.charge(now, 5)
	b.settle(&first, now, 0)
	now += 4 * second
	_, ok := b.charge(now, 4)
	require.True(t, ok)
	b.settle(&second5, now, 0)
	_, ok = b.charge(now, 7)
	require.False(t, ok, "4 of 10 were kept")
	_, ok = b.charge(now, 6)
	require.True(t, ok)
}

// TestGuavaKeepsDebt: where a charge waits for earlier debt, a change of the rate
// leaves all of it.
func TestGuavaKeepsDebt(t *testing.T) {
	g, now := waiting["smooth bursty"], ticks(time.Hour)
	slow := must(NewSmoothBursty(per(1, time.Second), 1, per(1, time.Second), 0))
	same, cut := g.Succeed(slow, now).Clamp(now+100*g.depth, now)
	require.False(t, cut)
	require.Equal(t, now+100*g.depth, same)
}

// What was not charged gives nothing back.
func TestRefundOfNoCharge(t *testing.T) {
	g, err := NewGCRA(Rate{Count: 10, Period: time.Hour, Resolution: Microseconds}, 10, 0)
	require.NoError(t, err)
	require.Zero(t, g.MaxRefund(Charge{N: 11}, 6))
	tat, given := g.Refund(5000, Charge{N: 11}, 1000, 6, 0)
	require.EqualValues(t, 5000, tat)
	require.Zero(t, given)
}
