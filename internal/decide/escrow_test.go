package decide_test

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// escrowEvent is a request, a lease at the shared limit, or its result in a region.
type escrowEvent struct {
	at int64
	do func(at int64)
}

type escrowEvents []escrowEvent

func (h escrowEvents) Len() int           { return len(h) }
func (h escrowEvents) Less(i, j int) bool { return h[i].at < h[j].at }
func (h escrowEvents) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *escrowEvents) Push(e any)        { *h = append(*h, e.(escrowEvent)) }
func (h *escrowEvents) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

const (
	regions    = 10
	regionTrip = 80_000 // us to the shared limit and back
)

// regionKey is one key in ten regions, under random demand, partitions and crashes.
type regionKey struct {
	rnd              *rand.Rand
	escrow           decide.Escrow
	shared           *decide.GCRA
	tat              int64
	rate             float64 // units a us
	states           [regions]decide.EscrowState
	cut              [regions]bool
	share            [regions]float64 // of the demand
	demand           float64          // times the rate
	events           escrowEvents
	perfect, healthy bool // no partitions; the demand is always more than the rate, without refunds

	water, peak                          float64 // units beyond the rate
	admitted, forgotten, leases, crashes int64
	lastForgotten                        [regions]int64
	open                                 [regions][]int64 // admissions that may be canceled
}

func (k *regionKey) after(at, us int64, do func(at int64)) {
	heap.Push(&k.events, escrowEvent{at: at + us, do: do})
}

func (k *regionKey) exp(mean float64) int64 { return int64(k.rnd.ExpFloat64()*mean) + 1 }

// request is one request, which makes the next.
func (k *regionKey) request(t *testing.T) func(int64) {
	return func(at int64) {
		k.after(at, k.exp(1/(k.rate*k.demand)), k.request(t))
		g, weight := 0, k.rnd.Float64()
		for weight -= k.share[0]; weight > 0 && g < regions-1; weight -= k.share[g] {
			g++
		}
		k.forget(t, g, at)
		n := min(1+k.rnd.Int64N(3)*k.rnd.Int64N(2), k.escrow.Advance+k.escrow.Hold)
		next, ok, want := k.escrow.Acquire(k.states[g], at, n)
		if !ok && want == 0 {
			return
		}
		k.states[g] = next
		if ok {
			k.admit(at, n)
			k.open[g] = append(k.open[g], n)
		}
		if want > 0 {
			k.lease(g, at, next.Leased, want)
		}
	}
}

// forget notes a debt that is over unpaid: never twice within the memory of a region.
func (k *regionKey) forget(t *testing.T, g int, at int64) {
	s := k.states[g]
	if s.Balance >= 0 || s.Ends > at {
		return
	}
	require.GreaterOrEqual(t, at-k.lastForgotten[g], k.escrow.Memory)
	require.LessOrEqual(t, -s.Balance, k.escrow.Advance)
	k.lastForgotten[g] = at
	k.states[g] = k.escrow.Aged(s, at)
	k.forgotten -= s.Balance
	k.water += float64(s.Balance)
}

// admit keeps the most units beyond the rate in any window.
func (k *regionKey) admit(at, n int64) {
	k.water = max(k.water, 0) + float64(n)
	k.peak = max(k.peak, k.water)
	k.admitted += n
}

// refund cancels the last admissions of a region. Units that it may not hold then
// are lost.
func (k *regionKey) refund(g int, at int64) {
	for _, n := range k.open[g][len(k.open[g])/2:] {
		k.states[g] = k.escrow.Return(k.states[g], at, n)
		k.water = max(k.water, 0) - float64(n)
		k.admitted -= n
	}
	k.open[g] = nil
}

func (k *regionKey) lease(g int, at, name, want int64) {
	k.leases++
	began := at
	done := func(units, wait int64, reached bool) func(int64) {
		return func(at int64) {
			if k.rnd.IntN(200) == 0 && !k.perfect {
				k.crashes++ // of the instance that leased
				return
			}
			k.states[g] = k.escrow.Lease(k.states[g], at, name, units, at-began, wait, reached)
		}
	}
	var ask func(n int64, first bool) func(int64)
	ask = func(n int64, first bool) func(int64) {
		return func(at int64) {
			if k.cut[g] {
				k.after(at, 200_000, done(0, 1_000_000, false))
				return
			}
			next, answer, quota := k.shared.Answer(k.tat, at, n)
			switch {
			case answer.Allowed:
				k.tat = next
				k.after(at, regionTrip/2, done(n, answer.RetryAfter, true))
			case first && quota.Remaining > 0:
				k.after(at, regionTrip, ask(quota.Remaining, false))
			default:
				k.after(at, regionTrip/2, done(0, answer.RetryAfter, true))
			}
		}
	}
	k.after(at, regionTrip/2, ask(min(want, k.shared.Params().MaxCost), true))
}

// weather cuts regions off and connects them, and moves the demand.
func (k *regionKey) weather(at int64) {
	mean := 300 / (k.rate * regions)
	k.after(at, k.exp(mean), k.weather)
	if g := k.rnd.IntN(regions); !k.perfect {
		k.cut[g] = !k.cut[g] && k.rnd.IntN(2) == 0
		k.refund(g, at)
	}
	sum := 0.
	for g := range k.share {
		k.share[g] = k.rnd.ExpFloat64() * float64(k.rnd.IntN(2)+k.rnd.IntN(2))
		sum += k.share[g]
	}
	for g := range k.share {
		k.share[g] = (k.share[g] + .01) / (sum + .1)
	}
	if k.demand = 1.3 + k.rnd.Float64(); !k.healthy {
		k.demand = []float64{.1, .5, 1, 1.5, 3}[k.rnd.IntN(5)]
	}
}

// run returns how long it ran, in us.
func (k *regionKey) run(t *testing.T, units float64) int64 {
	begin := int64(1_700_000_000_000_000)
	end := begin + int64(units/k.rate)
	k.weather(begin)
	k.after(begin, 0, k.request(t))
	last := begin
	for k.events[0].at < end {
		e := heap.Pop(&k.events).(escrowEvent)
		k.water -= k.rate * float64(e.at-last)
		last = e.at
		e.do(e.at)
	}
	return end - begin
}

// TestW2_Regions: ten regions, whose instances may crash while they lease, thousands of keys,
// refunds, and partitions of all lengths for days of virtual time: the regions together never
// admit more than is stated. Where the demand is, and no region is cut off, at least .95 of
// the budget is used.
func TestW2_Regions(t *testing.T) {
	var admitted, forgotten, leases, crashes, days int64
	used, budget, worst, least, leastOfAll, enough := 0., 0., 0., 2., 2., 0
	keys := max(cases.Count(200, 24_000), 10)
	for i := range keys {
		rnd := rand.New(rand.NewPCG(uint64(i), 33))
		period := []time.Duration{time.Second, time.Minute, time.Hour}[rnd.IntN(3)]
		count := 20 + rnd.Int64N(60)
		rate := decide.Rate{Count: count, Period: period, Resolution: decide.Microseconds}
		burst := max(count*(1+rnd.Int64N(3)), 2*regions)
		g, err := decide.NewGCRA(rate, burst, 0)
		require.NoError(t, err)
		excess := regions + rnd.Int64N(burst-regions+1)
		if period == time.Second { // for the whole rate in one region
			excess = burst
		}
		part := excess / regions
		p := g.Params()
		k := &regionKey{rnd: rnd, shared: g, rate: 1 / float64(p.Emission), perfect: i%2 == 0, healthy: i%4 == 0,
			escrow: decide.Escrow{Hold: part / 2, Advance: part - part/2, Memory: max(p.Depth, 10_000_000), Patience: 3_000_000}}
		took := k.run(t, 3000)
		require.LessOrEqual(t, k.peak, float64(burst+excess), "key %d", i)
		worst = max(worst, k.peak/float64(burst+excess))
		admitted, leases, crashes, days = admitted+k.admitted, leases+k.leases, crashes+k.crashes, days+took
		forgotten += k.forgotten
		if k.healthy {
			of := float64(burst) + k.rate*float64(took)
			used, budget = used+float64(k.admitted), budget+of
			leastOfAll = min(leastOfAll, float64(k.admitted)/of)
			if float64(excess) >= 6*regions*k.rate*regionTrip { // as Store.Region says
				least, enough = min(least, float64(k.admitted)/of), enough+1
			}
		}
	}
	t.Logf("W2: %d keys in %d regions, %.0f days: %d units admitted, %d leases, %d lost; %.3f of the bound; %d units of debts forgotten by regions that were cut off",
		keys, regions, float64(days)/86_400e6, admitted, leases, crashes, worst, forgotten)
	t.Logf("W2: %.3f of the budget used where demand is; at least %.3f for each of %d keys whose excess is enough for the whole rate, %.3f for others",
		used/budget, least, enough, leastOfAll)
	require.Greater(t, used/budget, .95)
	require.Greater(t, least, .95)
	if cases.Long() {
		require.Greater(t, leastOfAll, .9)
	} else {
		require.Greater(t, leastOfAll, .95)
	}
	require.Positive(t, enough)
	require.Positive(t, forgotten)
	require.Positive(t, crashes)
}
