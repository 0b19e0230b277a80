package adaptive_test

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
)

func TestRunQueueErrors(t *testing.T) {
	for want, opt := range map[string]adaptive.Option{
		"WithHook: the function is nil":                        adaptive.WithHook(nil),
		"target is 0s, want 1ms to 1h":                         adaptive.WithTarget(0),
		"target is 1h0m1s, want 1ms to 1h":                     adaptive.WithTarget(time.Hour + time.Second),
		"does not take the option WithSignal, only WithTarget": strategy.WithSignal(signal.Runnable()),
	} {
		_, err := adaptive.New(adaptive.RunQueue(opt))
		require.ErrorContains(t, err, want)
		_, err = adaptive.New(adaptive.Default(opt))
		require.ErrorContains(t, err, want)
	}
}

// TestRunQueueKeepsTheCapacity: for any cost of a request and any overload, the
// capacity that denials leave is used, admitted requests are answered within the
// target, and two seconds after the load has fallen no request is denied.
func TestRunQueueKeepsTheCapacity(t *testing.T) {
	for _, work := range []time.Duration{500 * time.Microsecond, 5 * time.Millisecond, 30 * time.Millisecond} {
		for _, load := range []float64{1.3, 2, 5, 10} {
			t.Run(fmt.Sprint(work, " ", load), func(t *testing.T) {
				m := newModel()
				l := m.limiter(t, adaptive.RunQueue(m.option()))
				before := m.serve(t, l, work, .85, 10*time.Second)
				require.Zero(t, denied(before, 0))

				step := m.at
				during := m.serve(t, l, work, load, 10*time.Second)
				reject := load * rejecting.Seconds() / work.Seconds()
				left := (1 - reject) / (1 - reject/load)
				admitted := (1 - denied(during, step+2*time.Second)) * load
				require.Greater(t, admitted, .93*left, "of the capacity")
				settled := max(2*time.Second, 200*work)
				require.Less(t, longest(during, step+settled), 500*time.Millisecond)

				step = m.at
				after := m.serve(t, l, work, .85, 10*time.Second)
				require.Zero(t, denied(after, step+2*time.Second))
			})
		}
	}
}

// TestRunQueueAdmitsABurst that fits within the target.
func TestRunQueueAdmitsABurst(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.RunQueue(m.option()))
	const work = 5 * time.Millisecond
	require.Zero(t, denied(m.serve(t, l, work, .5, 10*time.Second), 0))
	for range 10 {
		burst := m.serve(t, l, work, 1000, 60*work/1000) // 60 at once
		require.Zero(t, denied(burst, 0))
		require.Zero(t, denied(m.serve(t, l, work, .5, 2*time.Second), 0))
	}
}

// TestRunQueueOnASharedProcessor: the use by another process does not show in the
// processor time of this one, but denials do.
func TestRunQueueOnASharedProcessor(t *testing.T) {
	m := newModel()
	m.share = .65
	l := m.limiter(t, adaptive.RunQueue(m.option()))
	const work = 5 * time.Millisecond
	require.Zero(t, denied(m.serve(t, l, work, .85, 10*time.Second), 0))
	start := m.at
	all := m.serve(t, l, work, 3, 10*time.Second)
	require.Greater(t, (1-denied(all, start+2*time.Second))*3, .93)
	require.Less(t, longest(all, start+2*time.Second), 500*time.Millisecond)
}

// TestRunQueueOnASharedProcessorSlowly: a load of 1.3 times the capacity beside the
// neighbors is .85 of the processor; long requests are answered within the target
// nevertheless.
func TestRunQueueOnASharedProcessorSlowly(t *testing.T) {
	m := newModel()
	m.share = .65
	l := m.limiter(t, adaptive.RunQueue(m.option()))
	const work = 30 * time.Millisecond
	m.serve(t, l, work, .5, 10*time.Second)
	start := m.at
	all := m.serve(t, l, work, 1.3, 30*time.Second)
	require.Greater(t, (1-denied(all, start+15*time.Second))*1.3, .93)
	require.Less(t, longest(all, start+15*time.Second), 500*time.Millisecond)
}

// TestRunQueueAdmitsBatches: requests that arrive 20 at a time leave the processor idle
// if six of each 20 are admitted, and the limit does not stay closed for that.
func TestRunQueueAdmitsBatches(t *testing.T) {
	m := newModel()
	m.batch = 20
	l := m.limiter(t, adaptive.RunQueue(m.option(), adaptive.WithTarget(250*time.Millisecond)))
	const work = 5 * time.Millisecond
	m.serve(t, l, work, .85, 10*time.Second)
	start := m.at
	during := m.serve(t, l, work, 2, 10*time.Second)
	require.Greater(t, (1-denied(during, start+2*time.Second))*2, .93)
	start = m.at
	require.Zero(t, denied(m.serve(t, l, work, .85, 10*time.Second), start+3*time.Second))
}

// TestRunQueueWithinAQuota: a control group with half a processor, such as a
// container with a limit of 500m, counts as half a processor, also after a change.
func TestRunQueueWithinAQuota(t *testing.T) {
	for _, quota := range []float64{.25, .5} {
		m := newModel()
		m.share, m.quota = quota, quota
		l := m.limiter(t, adaptive.RunQueue(m.option()))
		const work = 5 * time.Millisecond
		for range 2 {
			require.Zero(t, denied(m.serve(t, l, work, .85, 15*time.Second), 0))
			start := m.at
			all := m.serve(t, l, work, 1.3, 10*time.Second)
			require.Greater(t, (1-denied(all, start+2*time.Second))*1.3, .93)
			require.Less(t, longest(all, start+2*time.Second), 250*time.Millisecond)
			m.serve(t, l, work, .5, 2*time.Second)
			m.share, m.quota = 1, 0
		}
	}
}

// TestRunQueueUnknown: without the number of runnable goroutines it admits
// everything, visibly.
func TestRunQueueUnknown(t *testing.T) {
	m := newModel()
	m.blind, m.runnable = true, 1_000_000
	l := m.limiter(t, adaptive.RunQueue(m.option()))
	for range 100 {
		require.True(t, acquire(t, l, "", 1).Allowed)
	}
	require.False(t, l.Explain().Strategies[0].Known)
}

// TestRunQueueExplains the cause of denials and the signal.
func TestRunQueueExplains(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Default(m.option()))
	m.serve(t, l, 5*time.Millisecond, 5, 5*time.Second)
	e := l.Explain()
	require.NotZero(t, e.Denied.Processor)
	require.Zero(t, e.Denied.Limit)
	s := e.Strategies[0]
	require.Equal(t, "runqueue", s.Name)
	require.Equal(t, 6, s.Limit)
	require.True(t, s.Overloaded)
	require.Equal(t, "runnable", s.Signal)
	require.Contains(t, s.Cause, "% of the processor time requested")
	require.Equal(t, "at least 115 % of the processor time requested", s.Cause, "the demand stops where the limit is closed")

	m.runnable = 7
	d := acquire(t, l, "", 1)
	require.False(t, d.Allowed)
	require.Positive(t, d.RetryAfter)
}

// TestRunQueuePeek: a peek shows that there is no room, and counts as an arrival:
// otherwise the load would seem to end as soon as a tap handle denies requests.
func TestRunQueuePeek(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.RunQueue(m.option()))
	m.runnable = 1000
	d := acquire(t, l, "", 0)
	require.True(t, d.Allowed)
	require.Zero(t, d.Remaining)
	m.runnable = 0
	require.Positive(t, acquire(t, l, "", 0).Remaining)

	l = m.limiter(t, adaptive.RunQueue(m.option()))
	lease := acquire(t, l, "", 0)
	for range 4000 {
		m.at += 500 * time.Microsecond
		m.runnable = 1000
		acquire(t, l, "", 0)
		if m.at%(5*time.Millisecond) == 0 {
			m.used += 5 * time.Millisecond
			lease.Release(0)
			m.runnable = 0
			lease = acquire(t, l, "", 1)
		}
	}
	require.Equal(t, 4, l.Explain().Strategies[0].Limit) // one of ten is served
}

// TestRunQueueSparesTheImportant: with priorities the denied requests are the
// sheddable ones.
func TestRunQueueSparesTheImportant(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.RunQueue(m.option()), adaptive.WithPriorities())
	const work = 5 * time.Millisecond
	m.serve(t, l, work, .85, 5*time.Second)
	start := m.at
	var important, others []arrival
	for _, v := range m.serve(t, l, work, 1.6, 20*time.Second) {
		if v.class == adaptive.Critical {
			important = append(important, v)
		} else {
			others = append(others, v)
		}
	}
	from := start + 3*time.Second
	require.Less(t, denied(important, from), .1)
	require.InDelta(t, .75, denied(others, from), .1)
}

// TestRunQueuesTogether: of two in a Min, each can deny.
func TestRunQueuesTogether(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Min(adaptive.Fixed(math.MaxInt32), adaptive.RunQueue(adaptive.WithTarget(time.Hour), m.option()), adaptive.RunQueue(m.option())))
	m.serve(t, l, 20*time.Millisecond, .85, 5*time.Second)
	m.runnable = 30 // the first admits 96, the second .35 s of work
	require.False(t, acquire(t, l, "", 1).Allowed)
	require.Zero(t, acquire(t, l, "", 0).Remaining)
}

// crowded is a machine with a long queue, which notices simultaneous readings.
type crowded struct {
	*model
	readers, most atomic.Int64
}

func (c *crowded) Runnable() (int, bool) {
	c.most.Store(max(c.most.Load(), c.readers.Add(1)))
	runtime.Gosched()
	c.readers.Add(-1)
	return 1000, true
}

// TestRunQueueReadsAlone: sixteen goroutines never wait for one another's reading of
// the run queue, which is behind a lock of the runtime. A second reader may be the
// one that learns.
func TestRunQueueReadsAlone(t *testing.T) {
	m := &crowded{model: newModel()}
	l := newLimiter(t, adaptive.RunQueue(adaptive.WithMachine(m)), adaptive.WithMachine(m))
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 200 {
				lease, err := l.Acquire(background, "", 1)
				if err == nil && lease.Allowed { // before the first reading is known
					lease.Release(algo.Succeeded)
				}
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, m.most.Load(), int64(2))
	require.Positive(t, l.Explain().Denied.Processor)
}

// TestRunQueueOnACrowdedProcessor: with a quarter of the processor the queue is bounded by
// the process's part, which is learned from few goroutines.
func TestRunQueueOnACrowdedProcessor(t *testing.T) {
	m := newModel()
	m.share, m.counted = .25, true
	l := m.limiter(t, adaptive.RunQueue(m.option()))
	const work = 5 * time.Millisecond
	m.serve(t, l, work, .5, 10*time.Second)
	start := m.at
	all := m.serve(t, l, work, 1.2, 20*time.Second)
	require.Greater(t, (1-denied(all, start+5*time.Second))*1.2, .97)
	require.Less(t, longest(all, start+5*time.Second), 500*time.Millisecond)
}
