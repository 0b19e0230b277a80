package distributed_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// meteredStreams are 64 streams at a time on one key, over four instances that spend from
// blocks, whose true costs are lognormal.
type meteredStreams struct {
	limiters []*distributed.Limiter
	until    time.Time
	used     atomic.Int64
	served   atomic.Int64
	cut      atomic.Int64
}

const (
	meteredRate   = 5000 // a second
	meteredBurst  = 4000
	meteredExcess = 800
	meteredMost   = 400 // of a stream
	meteredChunk  = 20
)

// meteredTime is so many milliseconds, or 0.6 of them under the race detector.
func meteredTime(ms int) time.Duration {
	return time.Duration(max(cases.Count(ms, ms), ms*3/5)) * time.Millisecond
}

func startMetered(t *testing.T, server *redistest.Server, long time.Duration, opts ...distributed.Option) *meteredStreams {
	m := new(meteredStreams)
	for range 4 {
		e := new(events)
		s := newStore(t, server.Client(), slices.Concat(quick(e), []distributed.Option{distributed.WithInstances(4), distributed.WithBlocks(meteredExcess)}, opts)...)
		l := must[*distributed.Limiter](t)(s.TokenBucket("tokens", algo.PerSecond(meteredRate), algo.Burst(meteredBurst)))
		acquire(t, l, "warm up", 0)
		m.limiters = append(m.limiters, l)
	}
	m.until = time.Now().Add(long)
	return m
}

// run serves streams until the end, and returns how long that took.
func (m *meteredStreams) run(t *testing.T) time.Duration {
	var group sync.WaitGroup
	start := time.Now()
	for i := range 64 {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			for time.Now().Before(m.until) {
				cost := int64(min(meteredMost, 80*math.Exp(rnd.NormFloat64()-.5)))
				if m.stream(t, m.limiters[i%len(m.limiters)], cost) {
					m.served.Add(1)
				} else {
					m.cut.Add(1)
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	group.Wait()
	return time.Since(start)
}

// stream reserves each chunk before it is produced, and stops if that is denied.
func (m *meteredStreams) stream(t *testing.T, l *distributed.Limiter, cost int64) bool {
	meter, err := meter.Start(ctx, l, "k", meteredChunk, 2*meteredChunk)
	require.NoError(t, err)
	if !meter.Allowed {
		return false
	}
	defer meter.Close()
	for cost > 0 {
		n := min(cost, meteredChunk)
		d, err := meter.Reserve(ctx, n)
		require.NoError(t, err)
		if !d.Allowed {
			return false
		}
		meter.Use(n)
		m.used.Add(n)
		cost -= n
		time.Sleep(2 * time.Millisecond)
	}
	return true
}

// TestW2_MeteredStreamsFromBlocks: 64 streams over four instances that take blocks in advance
// use at most B + R*w and the excess that WithBlocks states.
func TestW2_MeteredStreamsFromBlocks(t *testing.T) {
	cases.Slow(t)
	// On a busy machine a reply may take longer than the timeout of the other test; local
	// decisions then have another bound.
	m := startMetered(t, redistest.Start(t), meteredTime(3000), distributed.WithTimeout(patient))
	long := m.run(t)
	bound := meteredBurst + int64(long.Seconds()*meteredRate)
	t.Logf("W2: %d units in %v, %.3f of B + R*w; %d streams served, %d cut off", m.used.Load(), long, float64(m.used.Load())/float64(bound), m.served.Load(), m.cut.Load())
	require.LessOrEqual(t, m.used.Load(), bound+meteredExcess+1)
	require.Positive(t, m.cut.Load(), "the demand is larger than the limit")
}

// TestW3_MeteredStreamsThroughAnOutage: the same while Redis does not answer for a second.
func TestW3_MeteredStreamsThroughAnOutage(t *testing.T) {
	cases.Slow(t)
	server := redistest.Start(t)
	m := startMetered(t, server, meteredTime(4000), distributed.WithTimeout(100*time.Millisecond))
	var group sync.WaitGroup
	group.Go(func() {
		time.Sleep(meteredTime(1500))
		server.Pause()
		time.Sleep(meteredTime(1000))
		server.Resume()
	})
	long := m.run(t)
	group.Wait()
	bound := meteredBurst + int64(long.Seconds()*meteredRate)
	t.Logf("W3: %d units in %v, %.3f of B + R*w; %d streams served, %d cut off", m.used.Load(), long, float64(m.used.Load())/float64(bound), m.served.Load(), m.cut.Load())
	require.LessOrEqual(t, m.used.Load(), 2*bound+meteredExcess+1)
	require.Positive(t, m.cut.Load())
}
