package distributed

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// TestW3_ClockSteppedBack: after the server's clock stepped back by 12 s a key is
// denied for at most two periods, or bursts, and then has its whole rate again.
// The step itself admits no more than a window holds on both sides of an edge.
func TestW3_ClockSteppedBack(t *testing.T) {
	client := redistest.Start(t).Client()
	clock := useVirtualClock(t, client)
	store, err := New(client, WithTimeout(5*time.Second), WithInstances(1), WithDenyCache(0), WithFallback(FallbackDeny),
		WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	const quota, step = 10, 100 * time.Millisecond // per second
	for _, text := range []string{
		"10/s", "pacer 10/s slack 9", "fixed-window 10/s", "fixed-window 10/s offset 300ms", "sliding-window 10/s", "sliding-log 10/s",
	} {
		t.Run(text, func(t *testing.T) {
			spec, err := algo.Parse(text)
			require.NoError(t, err)
			l, err := store.Limiter(text, spec)
			require.NoError(t, err)
			second := func() (admitted int) {
				for range time.Second / step {
					clock.sleep(step)
					for range quota {
						lease, err := l.Acquire(t.Context(), "k", 1)
						require.NoError(t, err)
						require.Equal(t, algo.SourceRemote, lease.Source)
						if lease.Allowed {
							admitted++
						}
					}
				}
				return admitted
			}
			clock.sleep(time.Hour)
			second()
			clock.sleep(-12 * time.Second)
			first, next, third := second(), second(), second()
			t.Logf("admitted in each second after the step: %d, %d, %d", first, next, third)
			require.LessOrEqual(t, first+next, 3*quota)
			require.GreaterOrEqual(t, third, quota-1)
			require.LessOrEqual(t, third, 2*quota)
		})
	}
}
