package distributed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// TestW2_ResetsAndBansVoidCharges: a charge from before a reset or a ban is not given back
// to charges after it, however soon the key is without debt in between.
func TestW2_ResetsAndBansVoidCharges(t *testing.T) {
	s, _ := onRedis(t)
	rate := algo.PerHour(9_000) // whose windows hardly end within the test
	limits := map[string]*distributed.Limiter{
		"token bucket":   must[*distributed.Limiter](t)(s.TokenBucket("b", rate, algo.Burst(600))),
		"shares":         must[*distributed.Shares](t)(s.Shares("s", rate, map[string]int64{"x": 60}, algo.Burst(600))).Child("y"),
		"fixed window":   must[*distributed.Limiter](t)(s.FixedWindow("f", rate)),
		"sliding window": must[*distributed.Limiter](t)(s.SlidingWindow("w", rate)),
		"sliding log":    must[*distributed.Limiter](t)(s.SlidingLog("l", rate)),
	}
	for name, l := range limits {
		reset := func(key string) error { return l.Reset(ctx, key) }
		ban := func(key string) error { return l.Ban(ctx, key, 10*time.Millisecond) }
		for key, between := range map[string][]func(key string) error{
			"reset":             {reset},
			"ban":               {ban},
			"reset, ban":        {reset, ban},
			"reset, ban, reset": {reset, ban, reset},
		} {
			t.Run(name+", "+key, func(t *testing.T) {
				t.Parallel()
				old := remote(t, l, key, remote(t, l, key, 0).Remaining)
				require.True(t, old.Allowed)
				for _, f := range between {
					require.NoError(t, f(key))
				}
				remote(t, l, key, 1)
				time.Sleep(450 * time.Millisecond) // brings in more than that
				remote(t, l, key, remote(t, l, key, 0).Remaining)
				old.Release(algo.Canceled)
				for range 5 {
					require.LessOrEqual(t, remote(t, l, key, 0).Remaining, int64(9))
					time.Sleep(20 * time.Millisecond)
				}
			})
		}
	}
}
