package algo_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	colors "github.com/sluice-go/sluice/algo/marker"
)

// A wrapper occupies a slot if its limiter does; so does a limiter that is not
// known to occupy none.
func TestNeedsRelease(t *testing.T) {
	rate := bucket(algo.PerSecond(10))
	window := algo.Must(algo.NewSlidingWindow(algo.PerSecond(10)))
	slots := new(inFlight)
	for name, wrap := range map[string]func(algo.Limiter) algo.Limiter{
		"itself": func(l algo.Limiter) algo.Limiter { return l },
		"switch": func(l algo.Limiter) algo.Limiter { return algo.NewSwitch(l) },
		"shadow": algo.Shadow,
		"listed": func(l algo.Limiter) algo.Limiter { return listed(l, algo.DenyAll(), "k") },
		"ban": func(l algo.Limiter) algo.Limiter {
			return algo.Must(guard.NewBan(l, algo.PerMinute(3), time.Second, time.Minute))
		},
		"all":    func(l algo.Limiter) algo.Limiter { return algo.All(window, l, rate) },
		"nested": func(l algo.Limiter) algo.Limiter { return algo.Shadow(algo.NewSwitch(algo.All(rate, algo.Shadow(l)))) },
	} {
		require.False(t, algo.About(wrap(rate)).NeedsRelease, name)
		require.False(t, algo.About(wrap(window)).NeedsRelease, name)
		require.False(t, algo.About(wrap(algo.Unlimited())).NeedsRelease, name)
		require.True(t, algo.About(wrap(slots)).NeedsRelease, name)
		require.True(t, algo.About(wrap(&foreign{Limiter: rate})).NeedsRelease, "%s: it does not say", name)
		require.True(t, algo.About(wrap(algo.ByKey(func(context.Context, string) algo.Limiter { return rate }))).NeedsRelease, name)
	}
	off := algo.NewSwitch(slots)
	off.Off()
	require.True(t, algo.About(off).NeedsRelease, "it may be switched on at any time")
	marker, err := colors.NewSRTCM(algo.PerSecond(1), 10, 10)
	require.NoError(t, err)
	require.False(t, algo.About(colors.Limit(marker, colors.Green)).NeedsRelease)
}
