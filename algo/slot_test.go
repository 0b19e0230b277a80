package algo_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	colors "github.com/sluice-go/sluice/algo/marker"
)

// A wrapper occupies a slot if its limiter does; so does a limiter that is not
// known to occupy none.
func TestOccupiesSlot(t *testing.T) {
	rate := bucket(algo.PerSecond(10))
	window := algo.Must(algo.NewSlidingWindow(algo.PerSecond(10)))
	slots := new(inFlight)
	keys, err := algo.NewKeySet([]string{"k"}, nil)
	require.NoError(t, err)
	for name, wrap := range map[string]func(algo.Limiter) algo.Limiter{
		"itself":  func(l algo.Limiter) algo.Limiter { return l },
		"switch":  func(l algo.Limiter) algo.Limiter { return algo.NewSwitch(l) },
		"shadow":  algo.Shadow,
		"allowed": func(l algo.Limiter) algo.Limiter { return algo.AllowList(l, keys) },
		"denied":  func(l algo.Limiter) algo.Limiter { return algo.DenyList(l, keys) },
		"ban": func(l algo.Limiter) algo.Limiter {
			return algo.Must(algo.NewBan(l, algo.PerMinute(3), time.Second, time.Minute))
		},
		"all":    func(l algo.Limiter) algo.Limiter { return algo.All(window, l, rate) },
		"nested": func(l algo.Limiter) algo.Limiter { return algo.Shadow(algo.NewSwitch(algo.All(rate, algo.Shadow(l)))) },
	} {
		require.False(t, algo.OccupiesSlot(wrap(rate)), name)
		require.False(t, algo.OccupiesSlot(wrap(window)), name)
		require.False(t, algo.OccupiesSlot(wrap(algo.Unlimited())), name)
		require.True(t, algo.OccupiesSlot(wrap(slots)), name)
		require.True(t, algo.OccupiesSlot(wrap(&foreign{Limiter: rate})), "%s: it does not say", name)
		require.True(t, algo.OccupiesSlot(wrap(algo.ByKey(func(context.Context, string) algo.Limiter { return rate }))), name)
	}
	off := algo.NewSwitch(slots)
	off.Off()
	require.True(t, algo.OccupiesSlot(off), "it may be switched on at any time")
	marker, err := colors.NewSRTCM(algo.PerSecond(1), 10, 10)
	require.NoError(t, err)
	require.False(t, algo.OccupiesSlot(colors.Limit(marker, colors.Green)))
}

// A limit over time occupies no slot, and neither does a wrapper of one.
func ExampleOccupiesSlot() {
	users := algo.NewSwitch(algo.Must(algo.NewTokenBucket(algo.PerSecond(10))))
	fmt.Println(algo.OccupiesSlot(users))
	// Output: false
}
