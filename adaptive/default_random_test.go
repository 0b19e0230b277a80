package adaptive_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// newRandomRemote has Poisson arrivals, and draw draws the service time in
// milliseconds.
func newRandomRemote(workers int, rnd *rand.Rand, draw func(*rand.Rand) float64) *remote {
	r := newRemote(workers, 0)
	r.gap = rnd.ExpFloat64
	r.draw = func() time.Duration { return time.Duration(draw(rnd) * float64(time.Millisecond)) }
	return r
}

func exponential(mean float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return mean * r.ExpFloat64() }
}

// lognormal has the median and sigma given.
func lognormal(median, sigma float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return median * math.Exp(sigma*r.NormFloat64()) }
}

// cached takes hit, and miss in a share of all cases.
func cached(hit, miss, share float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		if r.Float64() < share {
			return miss
		}
		return hit
	}
}

// TestDefaultBelowCapacity: natural variation is no queue. At .85 of the capacity of
// the dependency, and without any bottleneck, less than 1 % of the requests are
// denied; more where long work queues with short work, whose usual time is then a
// small part of its response time.
func TestDefaultBelowCapacity(t *testing.T) {
	const many = 2000 // workers, so that no request waits
	for name, row := range map[string]struct {
		workers int
		rate    float64 // a second
		draw    func(*rand.Rand) float64
		most    float64 // denied, .01 if 0
	}{
		"4 workers, exponential 50 ms":       {4, 68, exponential(50), 0},
		"10 workers, exponential 10 ms":      {10, 850, exponential(10), 0},
		"10 workers, lognormal":              {10, 850 / math.Exp(.5), lognormal(10, 1), .02},
		"100 workers, exponential 50 ms":     {100, 1700, exponential(50), 0},
		"5 % misses, 5 a second":             {many, 5, cached(1, 200, .05), 0},
		"5 % misses, 100 a second":           {many, 100, cached(1, 200, .05), 0},
		"5 % misses, 1000 a second":          {many, 1000, cached(1, 200, .05), 0},
		"half misses, 300 a second":          {many, 300, cached(1, 200, .5), 0},
		"1 in 1000 takes 5 s, 1000 a second": {many, 1000, cached(1, 5000, .001), 0},
		"misses of 20 workers":               {20, .85 * 20000 / 11.5, cached(1.5, 201.5, .05), .2},
		"lognormal of sigma 2, 200 a second": {many, 200, lognormal(5, 2), 0},
		"one in 10 s":                        {many, .1, exponential(300), 0},
		"all take 1 s, 20 a second":          {many, 20, lognormal(1000, 0), 0},
		"all take 8 s, 6 a second":           {many, 6, lognormal(8000, 0), 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			l := m.limiter(t, adaptive.Default(m.option()))
			r := newRandomRemote(row.workers, rand.New(rand.NewPCG(1, 2)), row.draw)
			d := max(time.Minute, time.Duration(200/row.rate)*time.Second)
			most := row.most
			if most == 0 {
				most = .01
			}
			require.Less(t, denied(r.play(t, m, l, row.rate, d), 0), most)
		})
	}
}

// TestDefaultAfterAPause: a slowdown before a pause has no effect after it.
func TestDefaultAfterAPause(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Default(m.option()))
	r := newRemote(20, 10*time.Millisecond)
	require.Zero(t, denied(r.play(t, m, l, 1000, 20*time.Second), 0))
	r.service = 200 * time.Millisecond
	require.NotZero(t, denied(r.play(t, m, l, 1000, 5*time.Second), 0))
	m.at += time.Minute
	r.finish(m)
	r.service = 10 * time.Millisecond
	require.Zero(t, denied(r.play(t, m, l, 1000, 5*time.Second), 0))
}

// TestDefaultWithStreams: long-lived connections do not take the slots of requests,
// neither after a lull nor when the requests become slow.
func TestDefaultWithStreams(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Default(m.option()))
	streams := fill(t, l, 50)
	require.Len(t, streams, 50)
	r := newRemote(10, 10*time.Millisecond)
	require.Zero(t, denied(r.play(t, m, l, 500, 30*time.Second), 0))
	m.at += time.Minute
	start := m.at
	all := r.play(t, m, l, 500, 30*time.Second)
	require.Zero(t, denied(all, start+3*time.Second), "after a lull")

	r.service = 40 * time.Millisecond
	start = m.at
	all = r.play(t, m, l, 500, 30*time.Second)
	require.InDelta(t, .5, denied(all, start+10*time.Second), .05, "overload")
	r.service = 10 * time.Millisecond
	start = m.at
	all = r.play(t, m, l, 500, 10*time.Second)
	require.Zero(t, denied(all, start+3*time.Second), "and after it")
	releaseAll(streams, algo.Succeeded|algo.Untimed)
}

// TestDefaultWithStreamsOnly: streams alone have no usual time, and so no sign of a
// hang.
func TestDefaultWithStreamsOnly(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Default(m.option()))
	for range 200 {
		require.True(t, acquire(t, l, "", 1).Allowed)
		m.at += time.Second
	}
}

// TestDefaultWhileAllFails: failures do not move the usual time, and have no effect
// after they end.
func TestDefaultWhileAllFails(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Default(m.option()))
	r := newRemote(10, 10*time.Millisecond)
	r.play(t, m, l, 850, 20*time.Second)
	r.service = 100 * time.Millisecond
	r.play(t, m, l, 850, 3*time.Second)
	r.outcome, r.service = algo.Failed, 100*time.Microsecond
	start := m.at
	require.Zero(t, denied(r.play(t, m, l, 850, 20*time.Second), start+5*time.Second))
	r.outcome, r.service = algo.Succeeded, 10*time.Millisecond
	require.Zero(t, denied(r.play(t, m, l, 850, 20*time.Second), 0))
}

// TestDefaultWithSlowWork: work that takes longer than the target, and varies, waits for nothing.
// Its ends say so only after it has been in flight for long: Default may be wrong about it at first.
func TestDefaultWithSlowWork(t *testing.T) {
	for name, row := range map[string]struct {
		rate        float64 // a second
		draw        func(*rand.Rand) float64
		first, then float64 // most denied in the first minute, and in the next five
	}{
		"300 ms, 100 a second":         {100, exponential(300), .03, .02},
		"1 s, 20 a second":             {20, exponential(1000), .01, .01},
		"1 s, 100 a second":            {100, exponential(1000), .15, .03},
		"3 s, 5 a second":              {5, exponential(3000), .01, .08},
		"3 s, 20 a second":             {20, exponential(3000), .01, .03},
		"8 s, 20 a second":             {20, exponential(8000), .01, .02},
		"half of 2 s, 50 a second":     {50, cached(1, 2000, .5), .25, .03},
		"half of 2 s, 200 a second":    {200, cached(1, 2000, .5), .25, .03},
		"half of 2 s, 1000 a second":   {1000, cached(1, 2000, .5), .10, .03},
		"a fifth of 2 s, 200 a second": {200, cached(1, 2000, .2), .15, .05},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			l := m.limiter(t, adaptive.Default(m.option()))
			r := newRandomRemote(4000, rand.New(rand.NewPCG(1, 2)), row.draw)
			first := denied(r.play(t, m, l, row.rate, time.Minute), 0)
			then := denied(r.play(t, m, l, row.rate, 5*time.Minute), m.at-5*time.Minute)
			t.Logf("%.3f, %.4f", first, then)
			require.LessOrEqual(t, first, row.first)
			require.LessOrEqual(t, then, row.then)
		})
	}
}
