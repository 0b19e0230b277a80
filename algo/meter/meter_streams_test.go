package meter_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// streams is a simulation: 64 streams at a time on one key, whose costs are
// lognormal, a fifth of the most on average. A stream produces 20 units each 400 ms,
// which together is twice the limit of 100 000 a minute and a burst of 20 000.
type streams struct {
	limit *algo.RateLimiter
	ends  time.Time

	mu          sync.Mutex
	used        int64
	level, most time.Duration // of a bucket that drains at the rate and is never full
	at          time.Time
	whole, cut  int
}

const (
	streamCount = 64
	streamMost  = 4000
	chunkUnits  = 20
	tokenBurst  = 20_000
	perToken    = time.Minute / 100_000
)

// use counts units that a stream has produced.
func (s *streams) use(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.level = max(s.level-now.Sub(s.at), 0) + time.Duration(n)*perToken
	s.most, s.at = max(s.most, s.level), now
	s.used += n
}

func (s *streams) end(whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if whole {
		s.whole++
	} else {
		s.cut++
	}
}

// costOf draws the true cost of a stream.
func costOf(rnd *rand.Rand) int64 {
	const sigma = 1
	mean := math.Log(streamMost/5) - sigma*sigma/2
	return min(1+int64(math.Exp(mean+sigma*rnd.NormFloat64())), streamMost)
}

// strategy is how a stream of that cost spends. It reports whether the stream was
// served to its end.
type strategy func(s *streams, cost int64) (whole bool)

// start charges n units as soon as they fit.
func (s *streams) start(n, block int64) *meter.Meter {
	return s.startEstimated(func() int64 { return n }, block)
}

// startEstimated charges an estimate as soon as it fits. Each try has the latest one.
func (s *streams) startEstimated(estimate func() int64, block int64) *meter.Meter {
	for {
		m, err := meter.Start(bg, s.limit, "k", estimate(), block)
		if err != nil {
			panic(err)
		}
		if m.Allowed {
			return m
		}
		time.Sleep(m.RetryAfter)
	}
}

// chunks produces a stream, with check before and after each chunk.
func (s *streams) chunks(m *meter.Meter, cost int64, before, after func(n int64) bool) bool {
	defer m.Close()
	for cost > 0 && time.Now().Before(s.ends) {
		n := min(cost, chunkUnits)
		if !before(n) {
			return false
		}
		time.Sleep(400 * time.Millisecond)
		s.use(n)
		fits := after(n)
		m.Use(n)
		if cost -= n; !fits && cost > 0 {
			return false
		}
	}
	return true
}

func fits(int64) bool { return true }

// reserving returns whether n units fit into m now.
func reserving(m *meter.Meter) func(n int64) bool {
	return func(n int64) bool {
		d, err := m.Reserve(bg, n)
		return err == nil && d.Allowed
	}
}

// estimated reserves a quantile of the costs of earlier streams, and charges the
// units above it.
func estimated(quantile float64) strategy {
	e := algo.Must(meter.NewEstimator(quantile, 100, 2))
	return func(s *streams, cost int64) bool {
		whole := s.chunks(s.startEstimated(estimate(e), 0), cost, fits, fits)
		e.Learn("", "", streamMost, cost)
		return whole
	}
}

// estimate is of a stream of which only the most is known.
func estimate(e *meter.Estimator) func() int64 {
	return func() int64 { return e.Estimate("", "", streamMost, streamMost) }
}

// meteredEstimate reserves each chunk that is above the estimate, or waits.
func meteredEstimate(quantile float64) strategy {
	e := algo.Must(meter.NewEstimator(quantile, 100, 2))
	return func(s *streams, cost int64) bool {
		m := s.startEstimated(estimate(e), block)
		whole := s.chunks(m, cost, holding(m), fits)
		e.Learn("", "", streamMost, cost)
		return whole
	}
}

// holding waits until n units fit into m.
func holding(m *meter.Meter) func(n int64) bool {
	return func(n int64) bool {
		for {
			d, err := m.Reserve(bg, n)
			if err != nil || d.Allowed {
				return err == nil
			}
			time.Sleep(d.RetryAfter)
		}
	}
}

const block = 100

var strategies = []struct {
	name   string
	run    strategy
	excess int64   // allowed
	used   float64 // at least, of the limit
}{
	{"reserve the maximum", func(s *streams, cost int64) bool {
		return s.chunks(s.start(streamMost, 0), cost, fits, fits)
	}, 0, 0},
	{"reserve the 0.9 quantile", estimated(.9), streamCount * streamMost, .42},
	{"reserve the median", estimated(.5), streamCount * streamMost, .9},
	{"reserve the 0.3 quantile", estimated(.3), streamCount * streamMost, .95},
	{"the 0.3 quantile, then each chunk", meteredEstimate(.3), 0, .95},
	{"check first, book afterwards", func(s *streams, cost int64) bool {
		for peek := s.start(0, 0); peek.Remaining == 0; peek = s.start(0, 0) {
			time.Sleep(peek.NextAfter)
		}
		begun := time.Now()
		for left := cost; left > 0 && time.Now().Before(s.ends); left -= chunkUnits {
			time.Sleep(400 * time.Millisecond)
			s.use(min(left, chunkUnits))
		}
		if time.Now().After(begun) {
			s.start(0, 0).Settle(cost)
		}
		return true
	}, math.MaxInt64, 0},
	{"before each chunk, or wait", func(s *streams, cost int64) bool {
		m := s.start(block, block)
		return s.chunks(m, cost, holding(m), fits)
	}, 0, .95},
	{"before each chunk, or stop", func(s *streams, cost int64) bool {
		m := s.start(block, block)
		return s.chunks(m, cost, reserving(m), fits)
	}, 0, .95},
	{"after each chunk, or stop", func(s *streams, cost int64) bool {
		m := s.start(block, block)
		return s.chunks(m, cost, fits, reserving(m))
	}, streamCount * chunkUnits, .95},
	{"after each chunk, and go on", func(s *streams, cost int64) bool {
		m := s.start(block, block)
		return s.chunks(m, cost, fits, func(n int64) bool { reserving(m)(n); return true })
	}, streamCount * streamMost, .95},
}

// run simulates that long.
func (s *streams) run(strategy strategy, long time.Duration) {
	s.limit = bucket(algo.PerMinute(100_000), algo.Burst(tokenBurst))
	s.at = time.Now()
	s.ends = s.at.Add(long)
	var all sync.WaitGroup
	for i := range uint64(streamCount) {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(i, 93))
			time.Sleep(time.Duration(rnd.Int64N(int64(400 * time.Millisecond))))
			for time.Now().Before(s.ends) {
				s.end(strategy(s, costOf(rnd)))
			}
		})
	}
	all.Wait()
}

// TestW1_StreamsStayWithinTheLimit: units that are used, at the instants at which
// they are used, exceed B + R*w by nothing if they are reserved before, and by at
// most a chunk a stream if their number is known only afterwards; and nearly all of
// the limit is used.
func TestW1_StreamsStayWithinTheLimit(t *testing.T) {
	long := time.Duration(max(cases.Count(10, 10), 5)) * time.Minute // estimates learn in the first
	var table strings.Builder
	fmt.Fprintf(&table, "%-34s %12s %8s %8s %8s\n", "", "limit used", "excess", "served", "cut off")
	for _, c := range strategies {
		synctest.Test(t, func(t *testing.T) {
			var s streams
			s.run(c.run, long)
			used := float64(s.used) / (tokenBurst + float64(long/perToken))
			excess := max(int64((s.most-tokenBurst*perToken+perToken-1)/perToken), 0)
			fmt.Fprintf(&table, "%-34s %12.3f %8d %8d %8d\n", c.name, used, excess, s.whole, s.cut)
			require.LessOrEqual(t, excess, c.excess, c.name)
			require.GreaterOrEqual(t, used, c.used, c.name)
		})
	}
	t.Logf("W1: %v of %d streams\n%s", long, streamCount, table.String())
}
