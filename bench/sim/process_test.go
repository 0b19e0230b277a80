package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// rows are goodputs over capacity of a real net/http process with GOMAXPROCS 1
// under an open loop from another core, single runs; -1 was not measured. They
// are at 2x, 5x and 10x.
var rows = map[string]struct{ queued, trial [3]float64 }{
	".1ms":  {[3]float64{-1, -1, -1}, [3]float64{.92, .55, 0}},
	".5ms":  {[3]float64{.97, .90, -1}, [3]float64{.96, .90, .76}},
	"5ms":   {[3]float64{1, 1, .99}, [3]float64{.97, .98, .98}},
	"30ms":  {[3]float64{1, 1, 1}, [3]float64{.98, 1, 1}},
	"100ms": {[3]float64{1.05, 1.04, 1.04}, [3]float64{1, 1, .98}},
	"io":    {[3]float64{1, .99, -1}, [3]float64{1, .99, .94}},
}

// TestGoSchedulerLikeTheProcess: with a gate of 8 runnable goroutines for each
// processor, and with the trial, the model is within 0.1 of the real process.
func TestGoSchedulerLikeTheProcess(t *testing.T) {
	for i, h := range Handlers {
		row, ok := rows[h.Name]
		if !ok {
			continue
		}
		for k, x := range []float64{2, 5, 10} {
			for _, c := range []struct {
				by   Strategy
				want float64
			}{{Queued(8), row.queued[k]}, {Trial(), row.trial[k]}} {
				if c.want < 0 {
					continue
				}
				got, err := Evaluate(Process(i, x), c.by, 3)
				require.NoError(t, err)
				require.InDelta(t, c.want, got.Goodput.Median, .1, "%s %s %gx", c.by.Name, h.Name, x)
			}
		}
	}
}

// TestGoWithoutALimit: a Go server without a limiter has hardly any goodput under
// overload, and after it, because it works for clients that have left.
func TestGoWithoutALimit(t *testing.T) {
	for i, h := range Handlers {
		for k, x := range []float64{2, 5} {
			got, err := Evaluate(Process(i, x), None(), 3)
			require.NoError(t, err)
			require.Less(t, got.Goodput.Median, []float64{.26, .11}[k], "%s %gx", h.Name, x)
			require.Equal(t, Unreached.Seconds() > 0, got.Recovered.Median > 10, h.Name)
		}
	}
}

// TestInFlightSeesNothing: a handler that needs less than the quantum is alone behind
// the gate under any load, so a concurrency limit above the number of cores rejects
// nothing; a handler that waits piles up there.
func TestInFlightSeesNothing(t *testing.T) {
	for h, want := range map[int]float64{0: 0, 1: 0, 2: 0, 5: .05} {
		r, err := Run(Process(h, 2), Fixed(2), 1)
		require.NoError(t, err)
		if want == 0 {
			require.Zero(t, r.Rejected, Handlers[h].Name)
			require.Less(t, r.Goodput, .1, Handlers[h].Name)
		} else {
			require.Greater(t, r.Rejected, want, Handlers[h].Name)
		}
	}
}

// TestPollerAndQuantum checks the rules of the scheduler one by one.
func TestPollerAndQuantum(t *testing.T) {
	newest := func(n int, work Service) (order []int64) {
		sc := Scenario{Model: GoScheduler{Unmonitored: true}, Host: Host{Cores: 1}, Service: work, SLO: sec}
		w := &world{Scenario: sc, procs: 1}
		w.stats = newStats(10 * sec)
		s := newGoSched(GoScheduler{Unmonitored: true}, w)
		w.server, w.gate = s, &started{order: &order}
		for i := range n {
			s.kernel.push(&request{born: int64(i), left: int64(work.CPU)})
		}
		s.rouse()
		for s.next() != never {
			w.now = s.next()
			s.fire()
		}
		return order
	}
	order := newest(200, fixedWork)
	require.Len(t, order, 200)
	require.Equal(t, int64(127), order[0], "of the oldest 128 connections the newest is first")
	require.Equal(t, int64(0), order[127])
	require.Equal(t, int64(199), order[128], "then the other 72")
	require.Equal(t, int64(128), order[199])

	order = newest(3, Service{CPU: 25 * ms})
	require.Equal(t, []int64{2, 1, 0}, order, "all begin before the first goes on")
}

// started notes in which order requests begin.
type started struct {
	open
	order *[]int64
}

func (s *started) enter(r *request) bool {
	*s.order = append(*s.order, r.born)
	return true
}
