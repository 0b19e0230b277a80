package line_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo/internal/line"
)

func TestLine(t *testing.T) {
	limiter, other := new(int), new(int)
	ctx := context.Background()
	require.False(t, line.Waits(limiter, "k"))
	a, b, c := line.Join(limiter, "k", 3), line.Join(limiter, "k", 4), line.Join(limiter, "k", 5)
	require.True(t, line.Waits(limiter, "k"))
	require.False(t, line.Waits(limiter, "l"))
	require.False(t, line.Waits(other, "k"))
	require.Equal(t, []int64{0, 3, 7}, []int64{a.Ahead(), b.Ahead(), c.Ahead()})
	require.True(t, a.Wait(ctx, time.Nanosecond))
	require.False(t, b.Wait(ctx, time.Millisecond))
	gone, cancel := context.WithCancel(ctx)
	cancel()
	require.False(t, c.Wait(gone, time.Hour))
	b.Leave()
	require.False(t, c.Wait(ctx, time.Millisecond), "a is first")
	a.Leave()
	require.True(t, c.Wait(ctx, time.Hour))
	c.Leave()
	require.False(t, line.Waits(limiter, "k"))

	function := func() {}
	require.False(t, line.Waits(function, "k"))
	none := line.Join(function, "k", 1)
	require.True(t, none.Wait(ctx, 0))
	require.Zero(t, none.Ahead())
	none.Leave()
}

// At most one caller is first at any time, and all become it.
func TestLineUnderLoad(t *testing.T) {
	limiter, inside := new(int), 0
	var callers sync.WaitGroup
	for range 200 {
		callers.Go(func() {
			p := line.Join(limiter, "k", 1)
			defer p.Leave()
			if p.Wait(context.Background(), time.Minute) {
				inside++ // the race detector sees two at once
			}
		})
	}
	callers.Wait()
	require.Equal(t, 200, inside)
	require.False(t, line.Waits(limiter, "k"))
}
