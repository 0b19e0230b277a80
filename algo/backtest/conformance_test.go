package backtest_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
	"github.com/sluice-go/sluice/algo/backtest"
)

// recorder records the decisions of a limiter under the conformance kit, until a refund, which a
// replay does not have.
type recorder struct {
	*algo.RateLimiter
	spec    algo.Spec
	mu      sync.Mutex
	closed  bool
	events  []backtest.Event
	answers []algo.Decision
	leases  []algo.Lease
}

const mostRecorded = 512

func newRecorder(s algo.Spec) (*recorder, error) {
	l, err := s.New()
	if err != nil {
		return nil, err
	}
	r := &recorder{RateLimiter: l, spec: s}
	r.events = append(make([]backtest.Event, 0, mostRecorded), backtest.Event{At: time.Now()}) // its windows begin now
	r.answers = append(make([]algo.Decision, 0, mostRecorded), algo.Decision{})
	r.leases = make([]algo.Lease, 0, mostRecorded)
	return r, nil
}

// Acquire allocates nothing, because the kit requires it.
func (r *recorder) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	inner, err := r.RateLimiter.Acquire(ctx, key, n)
	if err != nil {
		return inner, err
	}
	if r.closed = r.closed || len(r.events) == mostRecorded; r.closed {
		return inner, nil
	}
	r.events = append(r.events, backtest.Event{At: time.Now(), Key: key, Cost: n})
	r.answers = append(r.answers, inner.Decision)
	r.leases = append(r.leases, inner)
	return algo.NewLease(inner.Decision, r, algo.Handle{Key: key, N: n, At: int64(len(r.leases) - 1)}), nil
}

// Release and Settle forward to the lease of the limiter.
func (r *recorder) Release(h algo.Handle, o algo.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = r.closed || o.Result() == algo.Canceled && h.N > 0
	r.leases[h.At].Release(o)
}

func (r *recorder) Settle(h algo.Handle, actual int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.leases[h.At].Settle(actual)
}

// compare replays what was recorded.
func (r *recorder) compare(t *testing.T) int {
	replay, err := backtest.New(backtest.Config{Limits: []algo.Spec{r.spec}})
	require.NoError(t, err)
	for i, e := range r.events {
		got, err := replay.Add(e)
		require.NoError(t, err)
		if i > 0 && got[0] != r.answers[i] {
			require.Equal(t, r.answers[i], got[0], "%v: decision %d", r.spec, i)
		}
	}
	return len(r.events) - 1
}

// TestReplayDecidesAsTheLimiter: on the calls of the conformance kit a replay has the decisions of a
// limiter on the system's clock, in every field.
func TestReplayDecidesAsTheLimiter(t *testing.T) {
	windows := func(r algo.Rate, w time.Duration) int64 { return r.Count * (2 + int64(w/r.Period)) }
	for text, bound := range map[string]algotest.Bound{
		"token-bucket 1/s":           {Units: algotest.BurstPlusRate},
		"pacer 1/s slack 9 queue 0":  {Units: algotest.BurstPlusRate},
		"nginx 1/s burst 9 nodelay":  {Units: algotest.BurstPlusRate},
		"strict 1/s":                 {Units: algotest.BurstPlusRate, Strict: true},
		"fixed-window 1/s":           {Units: windows},
		"sliding-window 1/s":         {Units: windows, Strict: true},
		"sliding-window 1/s cells 7": {Units: windows, Strict: true},
		"sliding-log 1/s":            {Units: windows, Strict: true}, // of at most 1000 units
	} {
		t.Run(text, func(t *testing.T) {
			spec, err := algo.Parse(text)
			require.NoError(t, err)
			var last *recorder
			compared, denied := 0, 0
			compare := func() {
				if last != nil {
					compared += last.compare(t)
					denied += len(slices.DeleteFunc(last.answers, func(d algo.Decision) bool { return d.Allowed }))
				}
			}
			algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
				compare()
				s := spec
				switch s.Rate = r; s.Algorithm {
				case "sliding-log":
					s.Rate.Count = min(r.Count, 1000)
				case "nginx":
					s.Burst = r.Count - 1
				case "pacer":
					s.Slack = r.Count - 1
				case "strict":
					s.Burst = (r.Count + 1) / 2
				}
				s, err := s.With(opts...)
				if err != nil {
					return nil, err
				}
				last, err = newRecorder(s)
				return last, err
			}, bound)
			compare()
			require.Greater(t, compared, 1000)
			require.Greater(t, denied, 100)
		})
	}
}
