package adaptive_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// TestWorkAtItsClient is not in flight for a strategy that tunes itself, while it
// occupies a constant limit.
func TestWorkAtItsClient(t *testing.T) {
	for name, row := range map[string]struct {
		s     adaptive.Strategy
		frees bool
	}{
		"gradient2": {adaptive.Gradient2(), true},
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
			require.LessOrEqual(t, len(fill(t, l, 10)), 2)
		})
	}
}

// TestAWaitForAClientServesTheQueue: a slot is free as soon as the work in it
// begins to wait.
func TestAWaitForAClientServesTheQueue(t *testing.T) {
	l := newLimiter(t, adaptive.Gradient2(), adaptive.WithLimits(1, 1), adaptive.WithQueue(adaptive.FIFO(1, time.Minute)))
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
	releaseAll([]algo.Lease{first, lease}, algo.Ignored)
}
