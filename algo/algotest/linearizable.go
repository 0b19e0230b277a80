package algotest

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/interleave"
)

func contextWithTimeout(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

// Interleave yields the processor in some of the windows between a read and its
// swap, until the test ends. Tests that use it must not run in parallel with
// others.
func Interleave(t *testing.T) {
	var calls atomic.Uint64
	interleave.Hook = func() {
		if calls.Add(1)%3 != 0 {
			runtime.Gosched()
		}
	}
	t.Cleanup(func() { interleave.Hook = nil })
}

// op is one call in a history under a frozen clock.
type op struct {
	refund bool
	n      int64
}

// counter is the sequential model: under a frozen clock a limit on units is a
// counter of the remaining ones.
var counter = porcupine.Model{
	Init: func() any { return int64(-1) },
	Step: func(state, input, output any) (bool, any) {
		left, in, out := state.(int64), input.(op), output.(algo.Decision)
		if left < 0 { // the first peek returns the initial state
			return true, out.Remaining
		}
		switch {
		case in.refund:
			return true, left + in.n
		case in.n <= left:
			return out.Allowed && out.Remaining == left-in.n, left - in.n
		default:
			return !out.Allowed && out.Remaining == left, left
		}
	},
	Equal: func(a, b any) bool { return a == b },
}

// linearizable: histories of four clients with ten calls each, charges and
// refunds, have an equivalent sequential history of the counter.
func linearizable(t *testing.T, s subject) {
	if s.bound.PayForward {
		return
	}
	Interleave(t)
	rnd := rand.New(rand.NewPCG(9, 10))
	for range Cases(500, 10_000) {
		r := rates[rnd.IntN(len(rates))]
		l := s.new(t, r)
		ok := porcupine.CheckOperations(counter, record(t, l, rnd.Uint64()))
		require.True(t, ok, "it is not safe for concurrent use: no order of the calls of four goroutines gives their answers; the rate is %v", r)
	}
}

// record calls l from four goroutines under a frozen clock.
func record(t *testing.T, l algo.Limiter, seed uint64) []porcupine.Operation {
	const clients, calls = 4, 10
	var clock atomic.Int64
	histories := make([][]porcupine.Operation, clients)
	first := porcupine.Operation{Input: op{}, Call: clock.Add(1), Output: peek(t, l, "k")}
	first.Return = clock.Add(1)
	var group sync.WaitGroup
	for c := range clients {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(c)))
			for len(histories[c]) < calls {
				n := 1 + rnd.Int64N(3)
				o := porcupine.Operation{ClientId: c, Input: op{n: n}, Call: clock.Add(1)}
				lease, _ := l.Acquire(ctx, "k", n)
				o.Return, o.Output = clock.Add(1), lease.Decision
				histories[c] = append(histories[c], o)
				if lease.Allowed && rnd.IntN(3) == 0 {
					o := porcupine.Operation{ClientId: c, Input: op{true, n}, Call: clock.Add(1)}
					lease.Release(algo.Canceled)
					o.Return, o.Output = clock.Add(1), algo.Decision{}
					histories[c] = append(histories[c], o)
				}
			}
		})
	}
	group.Wait()
	all := []porcupine.Operation{first}
	for _, h := range histories {
		all = append(all, h...)
	}
	return all
}
