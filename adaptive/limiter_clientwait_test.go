package adaptive_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// TestWorkAtItsClient is not in flight for a strategy that tunes itself, while it
// occupies a constant limit.
func TestWorkAtItsClient(t *testing.T) {
	for name, row := range map[string]struct {
		s     adaptive.Strategy
		frees bool
	}{
		"gradient2": {strategy.Gradient2(), true},
		"default":   {adaptive.Default(), true},
		"fixed":     {adaptive.Fixed(4), false},
		"min":       {adaptive.Min(adaptive.Fixed(4), adaptive.Default()), false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, row.s, adaptive.WithLimits(1, 4))
			held := fill(t, l, 10)
			require.Len(t, held, 4)
			held[0].AwaitClient(true)
			held[1].AwaitClient(true)
			require.Equal(t, 2, l.Explain().AtClient)
			require.Equal(t, 4, l.InFlight())
			if !row.frees {
				require.Zero(t, acquire(t, l, "", 0).Remaining)
				require.Empty(t, fill(t, l, 10))
				return
			}
			require.EqualValues(t, 2, acquire(t, l, "", 0).Remaining)
			more := fill(t, l, 10)
			require.Len(t, more, 2)

			held[0].AwaitClient(false) // now five of them work
			releaseAll(more[:1], algo.Succeeded)
			require.Empty(t, fill(t, l, 10))
			held[1].Settle(0) // lighter while it waits: the others do not become lighter too
			releaseAll(more[1:], algo.Succeeded)
			require.LessOrEqual(t, len(fill(t, l, 10)), 1)
		})
	}
}

// constant is a strategy of no package, whose limit is that number.
type constant int

func (c constant) Limit() int              { return int(c) }
func (c constant) Observe(adaptive.Sample) {}

// TestC1_SettlesAtTheClient: no admission brings the work that does not wait for its client
// above the limit, whatever is settled while it waits.
func TestC1_SettlesAtTheClient(t *testing.T) {
	const limit = 10
	rnd := rand.New(rand.NewPCG(5, 6))
	for range cases.Count(200, 5000) {
		l := newLimiter(t, constant(limit))
		type work struct {
			lease algo.Lease
			units int64
			waits bool
		}
		var all []*work
		for range 100 {
			var w *work
			i := rnd.IntN(len(all) + 1)
			if i < len(all) {
				w = all[i]
			}
			switch op := rnd.IntN(4); {
			case w == nil:
				n := rnd.Int64N(limit + 1)
				w = &work{lease: acquire(t, l, "", n), units: n}
				if !w.lease.Allowed {
					continue
				}
				all = append(all, w)
				works := int64(0)
				for _, w := range all {
					if !w.waits {
						works += w.units
					}
				}
				if n > 0 {
					require.LessOrEqual(t, works, int64(limit))
				}
			case op == 0:
				w.waits = !w.waits
				w.lease.AwaitClient(w.waits)
			case op == 1:
				w.units = rnd.Int64N(limit + 3)
				w.lease.Settle(w.units)
			case op == 2:
				if w.waits {
					w.lease.AwaitClient(false)
				}
				w.lease.Release(algo.Succeeded)
				all = slices.Delete(all, i, i+1)
			}
		}
		for _, w := range all {
			if w.waits {
				w.lease.AwaitClient(false)
			}
			w.lease.Release(algo.Succeeded)
		}
		require.Zero(t, l.InFlight())
		lease := acquire(t, l, "", 1)
		lease.AwaitClient(true)
		require.EqualValues(t, limit, acquire(t, l, "", 0).Remaining, "no slot of the settled cost is left")
	}
}

// TestAWaitForAClientServesTheQueue: a slot is free as soon as the work in it
// begins to wait.
func TestAWaitForAClientServesTheQueue(t *testing.T) {
	l := newLimiter(t, strategy.Gradient2(), adaptive.WithLimits(1, 1), adaptive.WithQueue(adaptive.FIFO(1, time.Minute)))
	first := acquire(t, l, "", 1)
	admitted := make(chan algo.Lease)
	go func() {
		lease, err := l.Acquire(background, "", 1)
		if err == nil {
			admitted <- lease
		}
	}()
	require.Eventually(t, func() bool { return l.Explain().Waiting == 1 }, time.Minute, time.Millisecond)
	first.AwaitClient(true)
	lease := <-admitted
	require.True(t, lease.Allowed)
	releaseAll([]algo.Lease{first, lease}, algo.Succeeded|algo.Untimed)
}
