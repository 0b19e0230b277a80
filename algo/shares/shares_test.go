package shares_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/algo/shares"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// acquire fails the test on an error.
func acquire(t *testing.T, l algo.Limiter, key string, n int64) algo.Lease {
	lease, err := l.Acquire(t.Context(), key, n)
	require.NoError(t, err)
	return lease
}

func peek(t *testing.T, l algo.Limiter, key string) algo.Decision {
	return acquire(t, l, key, 0).Decision
}

// A child without a floor has the whole limit while the others are idle.
func TestSharesConformance(t *testing.T) {
	algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
		s, err := shares.New(r, nil, opts...)
		if err != nil {
			return nil, err
		}
		return s.Child("a"), nil
	}, algotest.Bound{Units: algotest.BurstPlusRate})
}

// So has a child with a floor beside one that is idle, less the depth of that.
func TestSharesOfTwoConformance(t *testing.T) {
	algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
		s, err := shares.New(r, map[string]int64{"a": r.Count / 2, "b": r.Count / 3}, append(opts, algo.Burst(r.Count+3))...)
		if err != nil {
			return nil, err
		}
		return s.Child("a"), nil
	}, algotest.Bound{Units: func(r algo.Rate, w time.Duration) int64 { return algotest.BurstPlusRate(r, w) + 3 }})
}

// demand is one child's, as requests of one unit.
type demand struct {
	name  string
	every func(at time.Duration) time.Duration // to its next request; 0: none in the next second
}

func steady(perSecond int64) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration { return time.Second / time.Duration(perSecond) }
}

// serve runs demands for that long in virtual time, and returns the units each child got
// in each tenth of a second, and those it was denied.
func serve(t *testing.T, s *shares.Shares, long time.Duration, demands ...demand) (served, denied map[string][]int64) {
	served, denied = map[string][]int64{}, map[string][]int64{}
	var mu sync.Mutex
	var group sync.WaitGroup
	start := time.Now()
	for _, d := range demands {
		got, lost := make([]int64, long/(100*time.Millisecond)+1), make([]int64, long/(100*time.Millisecond)+1)
		served[d.name], denied[d.name] = got, lost
		group.Go(func() {
			for time.Since(start) < long {
				pause := d.every(time.Since(start))
				if pause == 0 {
					time.Sleep(time.Second)
					continue
				}
				time.Sleep(pause)
				mu.Lock()
				if i := time.Since(start) / (100 * time.Millisecond); int(i) < len(got) {
					if s.Child(d.name).Allow("org", 1) {
						got[i]++
					} else {
						lost[i]++
					}
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return served, denied
}

func total(units []int64) (n int64) {
	for _, u := range units {
		n += u
	}
	return n
}

// TestW2_SharesLendAndCallBack: of 1000 a second, search has a floor of 600 and batch of
// 300. While search is idle, a flood of batch gets its loan. When search wakes, each
// second from that instant on has its floor, and the total stays within the limit.
func TestW2_SharesLendAndCallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := algo.Must(shares.New(algo.PerSecond(1000), map[string]int64{"search": 600, "batch": 300}, algo.Burst(200)))
		wakes := time.Duration(max(cases.Count(30, 30), 10)) * time.Second
		long := 2 * wakes
		search := func(at time.Duration) time.Duration {
			if at < wakes {
				return 0
			}
			return time.Second / 2000
		}
		served, _ := serve(t, s, long, demand{"search", search}, demand{"batch", steady(3000)}, demand{"other", steady(3000)})
		idle := int64(wakes / (100 * time.Millisecond))
		lent := float64(total(served["batch"][:idle])+total(served["other"][:idle])) / (1000 * wakes.Seconds())
		require.GreaterOrEqual(t, lent, .98)
		require.Zero(t, total(served["search"][:idle]))
		for i := idle; i+10 < int64(len(served["search"])); i++ {
			require.GreaterOrEqual(t, total(served["search"][i:i+10]), int64(599), "the second from %d00 ms", i)
		}
		var sum int64
		for _, units := range served {
			sum += total(units)
		}
		require.LessOrEqual(t, sum, int64(200+1000*long.Seconds()))
		t.Logf("W2: %.3f of the idle capacity was lent; then in any second the floor of 600", lent)
	})
}

// TestU1_FloorsAreNeverDenied: a child that asks for exactly its floor is never denied,
// whatever floods the others send, and its idle units are lent.
func TestU1_FloorsAreNeverDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, used := range []int64{10, 100, 300, 600} {
			s := algo.Must(shares.New(algo.PerSecond(1000), map[string]int64{"search": 600, "batch": 300}, algo.Burst(200)))
			long := int64(max(cases.Count(20, 20), 5))
			served, denied := serve(t, s, time.Duration(long)*time.Second, demand{"search", steady(used)}, demand{"batch", steady(2000)}, demand{"other", steady(2000)})
			require.Zero(t, total(denied["search"]))
			lent := float64(total(served["batch"])+total(served["other"])) / float64(long*(1000-used))
			require.GreaterOrEqual(t, lent, .98)
			t.Logf("search uses %d of its 600: %.3f of the rest is lent", used, lent)
		}
	})
}

// A child that settles far above its reservation takes no floor from another.
func TestSharesOfDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := algo.Must(shares.New(algo.PerSecond(10), map[string]int64{"a": 5, "b": 5}, algo.Burst(10)))
		lease := acquire(t, s.Child("a"), "", 1)
		lease.Settle(1000)
		require.False(t, s.Child("a").Allow("", 1))
		for range 10 {
			require.True(t, s.Child("b").Allow("", 1))
			time.Sleep(200 * time.Millisecond)
		}
	})
}

func TestSharesAsALimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := algo.Must(shares.New(algo.PerMinute(60), map[string]int64{"a": 30}, algo.Burst(20)))
		a, other := s.Child("a"), s.Child("no such name")
		require.NotSame(t, a, other)
		require.Same(t, other, s.Child("another"))
		about := a.About()
		require.Equal(t, algo.Description{Quota: 20, Window: 20 * time.Second}, about)
		lease := acquire(t, a, "k", 20)
		require.Equal(t, int64(0), lease.Remaining)
		require.False(t, other.Allow("k", 1))
		require.True(t, other.Allow("l", 19))
		require.Equal(t, 2, a.Stats().Live)
		lease.Settle(5)
		require.Equal(t, int64(15), peek(t, other, "k").Remaining)
		require.Equal(t, algo.Never, acquire(t, other, "k", 20).Reason)
		lease.Release(algo.Canceled)
		require.Equal(t, int64(20), peek(t, a, "k").Remaining)
		a.Reset("l")
		require.Equal(t, int64(19), peek(t, other, "l").Remaining)
		m, err := meter.Start(t.Context(), a, "m", 3, 4)
		require.NoError(t, err)
		m.Use(9)
		m.Close()
		require.Equal(t, int64(11), peek(t, a, "m").Remaining)
		time.Sleep(time.Hour)
		require.Zero(t, a.Stats().Live)
		_, err = shares.New(algo.PerSecond(1), map[string]int64{"a": 2})
		require.ErrorContains(t, err, "shares: floors are")
		_, err = shares.New(algo.PerSecond(1), nil, algo.Cells(1))
		require.ErrorContains(t, err, "Cells")
	})
}

// sharesCall is one call of a child in a history.
type sharesCall struct {
	child int
	n     int64
}

// TestL1_Shares: under a frozen clock, whatever the order of four goroutines, the children
// answer as two buckets of their own and a common one.
func TestL1_Shares(t *testing.T) {
	algotest.Interleave(t)
	model := porcupine.Model{
		Init: func() any { return [3]int64{5, 3, 8} }, // half of 16, in proportion to 10 and 6 of 16
		Step: func(state, input, output any) (bool, any) {
			left, in, out := state.([3]int64), input.(sharesCall), output.(algo.Decision)
			if in.n > left[in.child]+left[2] {
				return !out.Allowed && out.Remaining == left[in.child]+left[2], left
			}
			own := min(in.n, left[in.child])
			left[in.child] -= own
			left[2] -= in.n - own
			return out.Allowed && out.Remaining == left[in.child]+left[2], left
		},
	}
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(cases.Count(300, 5000)) {
			s := algo.Must(shares.New(algo.PerSecond(16), map[string]int64{"0": 10, "1": 6}))
			var clock atomic.Int64
			var histories [4][]porcupine.Operation
			var group sync.WaitGroup
			for c := range histories {
				group.Go(func() {
					rnd := rand.New(rand.NewPCG(seed, uint64(c)))
					for range 6 {
						in := sharesCall{rnd.IntN(2), 1 + rnd.Int64N(3)}
						o := porcupine.Operation{ClientId: c, Input: in, Call: clock.Add(1)}
						lease, _ := s.Child(strconv.Itoa(in.child)).Acquire(t.Context(), "k", in.n)
						o.Output, o.Return = lease.Decision, clock.Add(1)
						histories[c] = append(histories[c], o)
					}
				})
			}
			group.Wait()
			var all []porcupine.Operation
			for _, h := range histories {
				all = append(all, h...)
			}
			require.True(t, porcupine.CheckOperations(model, all), "seed %d", seed)
		}
	})
}

func BenchmarkShares(b *testing.B) {
	for _, children := range []int{1, 3, 16} {
		b.Run(fmt.Sprint(children), func(b *testing.B) {
			floors := map[string]int64{}
			for i := range children {
				floors[strconv.Itoa(i)] = 1_000_000
			}
			child := algo.Must(shares.New(algo.PerSecond(20_000_000), floors)).Child("0")
			b.ReportAllocs()
			for b.Loop() {
				child.Allow("k", 1)
			}
		})
	}
}
