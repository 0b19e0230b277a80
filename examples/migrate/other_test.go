package migrate_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/classic"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// The delays are those that Guava's acquire returns for these calls.
func TestGuava(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := algo.Must(classic.NewSmoothBursty(algo.PerSecond(5), algo.Forever))
		first := algo.Must(limiter.Acquire(ctx, "", 10))
		require.Zero(t, first.Delay)
		second := algo.Must(limiter.Acquire(ctx, "", 1))
		require.Equal(t, 2*time.Second, second.Delay)

		now := algo.Must(classic.NewSmoothBursty(algo.PerSecond(5), 0))
		timeout := algo.Must(classic.NewSmoothBursty(algo.PerSecond(5), 500*time.Millisecond))
		warming := algo.Must(classic.NewSmoothWarmingUp(algo.PerSecond(5), 3*time.Second, 3, algo.Forever))
		require.True(t, now.Allow("", 1))
		require.NotNil(t, timeout)
		require.NotNil(t, warming)
		require.NoError(t, limiter.SetRate(algo.PerSecond(10)))
		_, err := algo.Wait(ctx, limiter, "", 1)
		require.NoError(t, err)
	})
}

// Seven requests at one instant, as the documentation of limit_req has them.
func TestNginx(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		perAddress := algo.Must(classic.NewNginx(algo.PerSecond(2), 5, 0))
		var delays []time.Duration
		for range 6 {
			lease := algo.Must(perAddress.Acquire(ctx, "203.0.113.7", 1))
			require.True(t, lease.Allowed)
			delays = append(delays, lease.Delay)
		}
		require.Equal(t, []time.Duration{0, 5e8, 1e9, 15e8, 2e9, 25e8}, delays)
		require.False(t, algo.Must(perAddress.Acquire(ctx, "203.0.113.7", 1)).Allowed)
	})
	_ = algo.Must(classic.NewNginx(algo.PerSecond(2), 5, 5))
	_ = algo.Must(classic.NewNginx(algo.PerMinute(30), 12, 8))
	perAddress := algo.Must(classic.NewNginx(algo.PerSecond(2), 0, 0))
	_ = httpmw.Limit(perAddress, keyfunc.ClientIP())
	_ = httpmw.Limit(algo.Shadow(perAddress), keyfunc.ClientIP())
	connections := algo.Must(adaptive.PerKey(10))
	_ = httpmw.Limit(connections, keyfunc.ClientIP())
	server := algo.Must(adaptive.New(adaptive.Fixed(10)))
	_ = httpmw.Limit(server, keyfunc.Global())

	full, w := algo.Must(adaptive.New(adaptive.Fixed(1))), httptest.NewRecorder()
	algo.Must(full.Acquire(ctx, "", 1))
	httpmw.Limit(full, keyfunc.Global())(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	require.Equal(t, 503, w.Code, "as limit_conn perserver")

	key, file := "203.0.113.7", strings.NewReader("content")
	perSecond := algo.Must(algo.NewTokenBucket(algo.PerSecond(102_400)))
	content, err := io.ReadAll(meter.NewReader(ctx, file, perSecond, key))
	require.NoError(t, err)
	require.Equal(t, "content", string(content))
}

// The rules of sentinel-golang as limiters of this library.
func TestSentinel(t *testing.T) {
	reject := algo.Must(algo.NewSlidingWindow(algo.PerSecond(100), algo.Cells(2)))
	queueing := algo.Must(algo.NewPacer(algo.PerSecond(10), algo.MaxWait(500*time.Millisecond)))
	warm := algo.Must(classic.NewSmoothWarmingUp(algo.PerSecond(100), 10*time.Second, 3, 0))
	isolated := algo.Must(adaptive.New(adaptive.Fixed(12)))
	perParam := algo.Must(adaptive.PerKey(12))
	system := algo.Must(adaptive.New(strategy.BBR(strategy.WithSignal(signal.Load1()))))
	for _, l := range []algo.Limiter{reject, queueing, warm, isolated, perParam, system} {
		lease, err := l.Acquire(ctx, "resource", 1)
		require.NoError(t, err)
		require.True(t, lease.Allowed)
		lease.Release(algo.Succeeded)
	}
}
