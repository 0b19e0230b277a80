package adaptive_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// keysOf are the wirings of a limiter: one key for all users, no key, and a key for each
// user.
var keysOf = map[string]func(i int) string{
	"global": func(int) string { return "global" },
	"empty":  func(int) string { return "" },
	"user":   func(i int) string { return "user-" + strconv.Itoa(i%997) },
}

// crowd sends requests of all five classes in turn to a limiter of 20 slots, for
// 100 ms each, and returns the admitted share of each class in the second half.
func crowd(t *testing.T, l *adaptive.Limiter, key func(int) string, rate int, d time.Duration) (share [5]float64) {
	var asked, admitted [5]float64
	n := int(d.Seconds() * float64(rate))
	for i := range n {
		time.Sleep(time.Second / time.Duration(rate))
		class := i % 5
		ctx := adaptive.WithClass(background, adaptive.Class(class))
		lease, err := l.Acquire(ctx, key(i), 1)
		require.NoError(t, err)
		if i > n/2 {
			asked[class]++
		}
		if lease.Allowed {
			if i > n/2 {
				admitted[class]++
			}
			go func() {
				time.Sleep(100 * time.Millisecond)
				lease.Release(algo.Succeeded)
			}()
		}
	}
	for i := range share {
		share[i] = admitted[i] / asked[i]
	}
	time.Sleep(time.Second)
	return share
}

// TestPriorities: at 2.5 times the capacity, two classes pass in full and the last
// two not at all, whatever the keys are.
func TestPriorities(t *testing.T) {
	for name, key := range keysOf {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, gated(20), adaptive.WithPriorities())
				share := crowd(t, l, key, 500, 20*time.Second)
				require.Greater(t, share[adaptive.Critical], .95, "%v", share)
				require.Greater(t, share[adaptive.High], .8, "%v", share)
				require.Less(t, share[adaptive.Low], .1, "%v", share)
				require.Less(t, share[adaptive.Sheddable], .1, "%v", share)
				require.Positive(t, l.Explain().Denied.Priority)
				require.Zero(t, l.InFlight())

				plain := crowd(t, newLimiter(t, adaptive.Fixed(20)), key, 500, 20*time.Second)
				require.Less(t, plain[adaptive.Critical], .6, "without priorities all classes are equal")
			})
		})
	}
}

// TestPrioritiesWithRoom: nothing is denied while all requests fit, before and after
// overload.
func TestPrioritiesWithRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, gated(20), adaptive.WithPriorities())
		for range 2 {
			for class, share := range crowd(t, l, keysOf["user"], 100, 20*time.Second) {
				require.Equal(t, 1.0, share, "%v", adaptive.Class(class))
			}
			crowd(t, l, keysOf["user"], 1000, 5*time.Second)
		}
	})
}

// TestNothingIsKeptForASilentClass: 30 seconds after its last request, no slots are kept
// for a class, however many the others lack.
func TestNothingIsKeptForASilentClass(t *testing.T) {
	for _, load := range []float64{.4, 1.5} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, gated(8), adaptive.WithPriorities())
			rng := rand.New(rand.NewPCG(5, 6))
			send := func(class adaptive.Class, load float64, d time.Duration) uint64 {
				before := l.Explain().Denied.Priority
				for start := time.Now(); time.Since(start) < d; {
					time.Sleep(time.Duration(rng.ExpFloat64() * float64(10*time.Millisecond) / load / 8))
					lease, err := l.Acquire(adaptive.WithClass(background, class), "", 1)
					require.NoError(t, err)
					time.AfterFunc(10*time.Millisecond, func() { lease.Release(algo.Succeeded) })
				}
				return l.Explain().Denied.Priority - before
			}
			send(adaptive.Critical, 3, 2*time.Second)
			require.Positive(t, send(adaptive.Sheddable, load, 30*time.Second))
			require.Zero(t, send(adaptive.Sheddable, load, 30*time.Second))
			time.Sleep(time.Second)
		})
	}
}

// TestSlotsStayKept: the slots that a class lacked in one overload are kept for it in the next one.
func TestSlotsStayKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, gated(8), adaptive.WithPriorities())
		kept := func() uint64 {
			before := l.Explain().Denied.Priority
			leases := make([]algo.Lease, 0, 8)
			for i := range 10 {
				class := adaptive.Critical
				if i == 7 {
					class = adaptive.Sheddable
				}
				lease, err := l.Acquire(adaptive.WithClass(background, class), "", 1)
				require.NoError(t, err)
				leases = append(leases, lease)
			}
			for _, lease := range leases {
				lease.Release(algo.Succeeded)
			}
			return l.Explain().Denied.Priority - before
		}
		kept() // the last two begin the overload
		kept()
		require.EqualValues(t, 1, kept())
		time.Sleep(10 * time.Second)
		kept()
		require.EqualValues(t, 1, kept())
	})
}

// TestPrioritiesOfOneClass: a limiter with priorities keeps its limit in use when all
// requests have the same class.
func TestPrioritiesOfOneClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, gated(20), adaptive.WithPriorities())
		passed := 0
		for i := range 20_000 {
			time.Sleep(time.Second / 400)
			lease := acquire(t, l, "", 1)
			if lease.Allowed {
				if i >= 10_000 {
					passed++
				}
				go func() {
					time.Sleep(100 * time.Millisecond)
					lease.Release(algo.Succeeded)
				}()
			}
		}
		time.Sleep(time.Second)
		require.InDelta(t, .5, float64(passed)/10_000, .02, "half of the requests fit")
	})
}

// TestPrioritiesOfAQueue: in front of the processor too, requests of the lower class
// are denied first, whatever the keys are, and as much is served as without
// priorities.
func TestPrioritiesOfAQueue(t *testing.T) {
	for name, key := range keysOf {
		for _, work := range []time.Duration{500 * time.Microsecond, 5 * time.Millisecond} {
			t.Run(fmt.Sprint(name, " ", work), func(t *testing.T) {
				serve := func(opts ...adaptive.Option) (critical, all float64) {
					m := newModel()
					m.key = key
					m.class = func(i int) adaptive.Class {
						if i%10 == 0 {
							return adaptive.Critical
						}
						return adaptive.Sheddable
					}
					l := m.limiter(t, adaptive.RunQueue(m.option()), opts...)
					arrivals := m.serve(t, l, work, 5, 10*time.Second)
					return 1 - denied(of(arrivals, adaptive.Critical), m.at-8*time.Second), 1 - denied(arrivals, m.at-8*time.Second)
				}
				critical, all := serve(adaptive.WithPriorities())
				plain, most := serve()
				require.GreaterOrEqual(t, critical, .99)
				require.Less(t, plain, .5)
				require.InEpsilon(t, most, all, .02)
			})
		}
	}
}

// of is the arrivals of a class.
func of(all []arrival, c adaptive.Class) (some []arrival) {
	for _, v := range all {
		if v.class == c {
			some = append(some, v)
		}
	}
	return some
}
