package strategy_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
)

func TestAIMD(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := strategy.AIMD(strategy.WithInitial(100), strategy.WithTimeout(time.Second))
		teach(s, 10, 10*time.Millisecond)
		require.Equal(t, 110, s.Limit())
		fail := func(rtt time.Duration, o algo.Outcome) {
			s.Observe(adaptive.Sample{RTT: rtt, InFlight: 100, Outcome: o})
		}
		for range 100 { // all admitted under the same limit, failing together
			fail(50*time.Millisecond, algo.Failed)
		}
		require.Equal(t, 99, s.Limit(), "one decrease")
		time.Sleep(2 * time.Second)
		fail(1001*time.Millisecond, algo.Succeeded)
		require.Equal(t, 89, s.Limit(), "too slow is as bad")
		time.Sleep(time.Second)
		teach(s, 70, 10*time.Millisecond)
		require.Equal(t, 89, s.Limit(), "1 for each round trip")
		teach(s, 20, 10*time.Millisecond)
		require.Equal(t, 90, s.Limit())
	})
}

// TestAIMDBehindADependencyThatRejects: the dependency has 50 places and rejects what finds none, sooner
// than it serves. Nearly all of its places are used, and it rejects few.
func TestAIMDBehindADependencyThatRejects(t *testing.T) {
	for _, rejects := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 30 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			const places, clients, work, length = 50, 400, 100 * time.Millisecond, 30 * time.Second
			l := newLimiter(t, strategy.AIMD())
			var used, served, rejected atomic.Int64
			var all sync.WaitGroup
			start := time.Now()
			for i := range clients {
				all.Go(func() {
					random := rand.New(rand.NewPCG(1, uint64(i)))
					for time.Since(start) < length {
						lease, counts := acquire(t, l, "", 1), time.Since(start) > 5*time.Second
						if !lease.Allowed {
							time.Sleep(time.Duration(random.Int64N(int64(work))))
							continue
						}
						outcome, by := algo.Succeeded, &served
						if used.Add(1) > places {
							outcome, by = algo.Failed, &rejected
							used.Add(-1)
							time.Sleep(rejects)
						} else {
							time.Sleep(work*4/5 + time.Duration(random.Int64N(int64(work*2/5))))
							used.Add(-1)
						}
						lease.Release(outcome)
						if counts {
							by.Add(1)
						}
						if outcome == algo.Failed { // so that a rejection of no time makes no endless loop
							time.Sleep(time.Millisecond)
						}
					}
				})
			}
			all.Wait()
			require.Less(t, float64(rejected.Load()), .03*float64(served.Load()), "rejected in %v", rejects)
			require.Greater(t, float64(served.Load()), .9*places*25/work.Seconds(), "rejected in %v", rejects)
		})
	}
}
