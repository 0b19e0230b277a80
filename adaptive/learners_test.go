package adaptive_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// learners are the strategies that learn from each sample.
var learners = map[string]func(...adaptive.Option) (adaptive.Strategy, error){
	"NewGradient2": adaptive.NewGradient2, "NewVegas": adaptive.NewVegas, "NewAIMD": adaptive.NewAIMD,
}

func learner(t testing.TB, name string, opts ...adaptive.Option) adaptive.Strategy {
	t.Helper()
	s, err := learners[name](opts...)
	require.NoError(t, err)
	return s
}

// teach lets n samples complete one after another, with the whole limit in
// flight, or the number given.
func teach(s adaptive.Strategy, n int, rtt time.Duration, inFlight ...int) {
	for range n {
		time.Sleep(rtt)
		sample := adaptive.Sample{RTT: rtt, InFlight: s.Limit()}
		if len(inFlight) > 0 {
			sample.InFlight = inFlight[0]
		}
		s.Observe(sample)
	}
}

func TestLearnersDefaults(t *testing.T) {
	for name, most := range map[string]int{"NewGradient2": 200, "NewVegas": 1000, "NewAIMD": 200} {
		s := learner(t, name)
		require.Equal(t, 20, s.Limit(), name)
		l := newLimiter(t, s)
		require.Equal(t, algo.Never, acquire(t, l, "", int64(most)+1).Reason, name)
		require.Equal(t, algo.Overload, acquire(t, l, "", int64(most)).Reason, name)
		require.Equal(t, 50, learner(t, name, adaptive.WithInitial(50)).Limit())
		require.Equal(t, 30, learner(t, name, adaptive.WithLimits(30, 40)).Limit(), "the usual start, moved")
	}
}

// TestLearnersStayWithinLimits, whatever they are taught.
func TestLearnersStayWithinLimits(t *testing.T) {
	for name := range learners {
		rapid.Check(t, func(t *rapid.T) {
			lowest := rapid.IntRange(1, 50).Draw(t, "min")
			most := rapid.IntRange(lowest, 300).Draw(t, "max")
			s, err := learners[name](adaptive.WithLimits(lowest, most))
			require.NoError(t, err)
			for range rapid.IntRange(1, 200).Draw(t, "n") {
				s.Observe(adaptive.Sample{
					RTT:      time.Duration(rapid.Int64Range(-5, 1<<62).Draw(t, "rtt")),
					End:      time.Duration(rapid.Int64Range(-1<<40, 1<<62).Draw(t, "end")),
					InFlight: rapid.IntRange(-1, 1000).Draw(t, "in flight"),
					Outcome:  algo.Outcome(rapid.IntRange(0, 1).Draw(t, "outcome")),
				})
				require.GreaterOrEqual(t, s.Limit(), lowest)
				require.LessOrEqual(t, s.Limit(), most)
			}
		})
	}
}

// TestLearnersHoldWhenUnused: less than half in flight says nothing.
func TestLearnersHoldWhenUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name := range learners {
			s := learner(t, name, adaptive.WithInitial(100))
			teach(s, 500, 10*time.Millisecond, 49)
			require.Equal(t, 100, s.Limit(), name)
			teach(s, 20, 10*time.Millisecond, 51)
			require.Greater(t, s.Limit(), 100, name)
		}
	})
}

func TestGradient2DoublesAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := learner(t, "NewGradient2")
		teach(s, 20, 10*time.Millisecond) // one round trip
		require.Equal(t, 40, s.Limit())
		teach(s, 40, 10*time.Millisecond)
		require.Equal(t, 80, s.Limit())
		teach(s, 1, 100*time.Millisecond) // slower than 1.5 times the mean
		before := s.Limit()
		require.Less(t, before, 80)
		teach(s, 10, 10*time.Millisecond)
		require.InDelta(t, before+8, s.Limit(), 1, "from now on a fifth of 4 for each")
	})
}

// TestGradient2Step checks one step on paper: the mean is 10 ms, the sample 30,
// so g = clamp(1.5 * about 10/30, .5, 1) and the limit moves by a fifth.
func TestGradient2Step(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := learner(t, "NewGradient2", adaptive.WithInitial(100))
		teach(s, 50, 10*time.Millisecond, 1)
		teach(s, 1, 30*time.Millisecond)
		long := 10 + 20*2.0/601
		require.Equal(t, int(100*(1-.2*(1-1.5*long/30))), s.Limit())
		teach(s, 1, time.Hour)
		require.Equal(t, int(100*(1-.2*(1-1.5*long/30))*.9), s.Limit(), "at most half, a fifth of the way")
	})
}

// TestGradient2FollowsAFasterService: a mean that is too high is not kept.
func TestGradient2FollowsAFasterService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := learner(t, "NewGradient2", adaptive.WithInitial(100))
		teach(s, 100, time.Second, 1)
		teach(s, 100, 10*time.Millisecond, 1)
		teach(s, 30, 60*time.Millisecond)
		require.Less(t, s.Limit(), 100, "60 ms would not be slow beside 1 s")
	})
}

func TestVegasFindsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := learner(t, "NewVegas")
		// Ten at a time are served in 10 ms; more have to queue.
		sum := 0
		for i := range 10_000 {
			n := s.Limit()
			s.Observe(adaptive.Sample{RTT: time.Duration(max(n, 10)) * time.Millisecond, InFlight: n})
			if i >= 5000 {
				sum += n
			}
		}
		require.InDelta(t, 16, sum/5000, 4)
	})
}

// TestVegasAcceptsASlowerService: the old minimum is forgotten.
func TestVegasAcceptsASlowerService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := learner(t, "NewVegas", adaptive.WithLimits(1, 50))
		teach(s, 1000, 10*time.Millisecond)
		highest := 0
		for i := range 6000 {
			teach(s, 1, 100*time.Millisecond)
			if i >= 4000 { // long enough for a probe, and now and then it probes
				highest = max(highest, s.Limit())
			}
		}
		require.Equal(t, 50, highest)
	})
}

func TestVegasFailures(t *testing.T) {
	s := learner(t, "NewVegas", adaptive.WithInitial(100))
	s.Observe(adaptive.Sample{RTT: time.Second, InFlight: 1, Outcome: algo.Failed})
	require.Equal(t, 98, s.Limit())
}

func TestAIMD(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := learner(t, "NewAIMD", adaptive.WithInitial(100), adaptive.WithTimeout(time.Second))
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
		fail(time.Second, algo.Succeeded)
		require.Equal(t, 90, s.Limit())
	})
}

func TestLearnersRefuse(t *testing.T) {
	for name, make := range learners {
		for want, o := range map[string]adaptive.Option{
			"initial limit is 10, want 20 to 30": adaptive.WithInitial(10),
			"the zero Option is not an option":   {},
		} {
			_, err := make(adaptive.WithLimits(20, 30), o)
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, name+": ")
		}
	}
	_, err := adaptive.NewAIMD(adaptive.WithTimeout(0))
	require.ErrorContains(t, err, "timeout is 0s")
}

func TestLearnersAllocations(t *testing.T) {
	for name := range learners {
		var l algo.Limiter = newLimiter(t, learner(t, name))
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			lease, _ := l.Acquire(background, "", 1)
			lease.Release(algo.Succeeded)
		}), name)
	}
}
