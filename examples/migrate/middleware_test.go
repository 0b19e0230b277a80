package migrate_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/didip/tollbooth/v7"
	"github.com/go-chi/httprate"
	"github.com/stretchr/testify/require"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

func TestHttprate(t *testing.T) {
	before := httprate.LimitByIP(2, time.Hour)
	window := algo.Must(algo.NewSlidingWindow(algo.PerHour(2)))
	after := httpmw.Limit(window, keyfunc.ClientIP())
	require.Equal(t, served(3, before(handler)), served(3, after(handler)))

	_ = httprate.LimitAll(100, time.Minute)
	_ = httpmw.Limit(window, keyfunc.Global())
	_ = httprate.LimitBy(100, time.Minute, httprate.JoinKeys(httprate.KeyByIP, httprate.KeyByEndpoint))
	_ = httprate.Limit(100, time.Minute, httprate.WithKeyFuncs(httprate.KeyByIP, httprate.KeyByEndpoint))
	_ = httpmw.Limit(window, keyfunc.Join(keyfunc.ClientIP(), keyfunc.Route()))

	answer := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }
	_ = httprate.Limit(100, time.Minute, httprate.WithKeyByIP(), httprate.WithLimitHandler(answer))
	_ = httpmw.Limit(window, keyfunc.ClientIP(), httpmw.WithDenied(http.HandlerFunc(answer)))

	_ = httprate.Limit(100, time.Minute, httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
	_ = httpmw.Limit(window, keyfunc.ClientIP(), httpmw.WithHeaders(httpmw.None))
	_ = httpmw.Limit(window, keyfunc.ClientIP(), httpmw.WithHeaders(httpmw.LegacyEpoch))

	_ = httprate.WithIncrement(ctx, 5)
	_ = httpmw.WithCost(func(*http.Request) int64 { return 5 })
}

func TestTollbooth(t *testing.T) {
	lmt := tollbooth.NewLimiter(1, nil)
	lmt.SetIPLookups([]string{"RemoteAddr"})
	bucket := algo.Must(algo.NewTokenBucket(algo.PerSecond(1)))
	limit := httpmw.Limit(bucket, keyfunc.ClientIP())
	require.Equal(t, served(2, tollbooth.LimitHandler(lmt, handler)), served(2, limit(handler)))

	lmt.SetBurst(20)
	require.NoError(t, bucket.SetBurst(20))
	lmt.SetMax(10)
	require.NoError(t, bucket.SetRate(algo.PerSecond(10)))
	lmt.SetHeader("X-Access-Token", nil)
	_ = keyfunc.Join(keyfunc.ClientIP(), keyfunc.Header("X-Access-Token"))
	lmt.SetBasicAuthUsers([]string{"alice"})
	_ = keyfunc.BasicUser()
	_ = tollbooth.LimitByKeys(lmt, []string{"alice", "search"})
	_ = bucket.Allow(keyfunc.JoinKeys("alice", "search"), 1)
	lmt.SetMessage("try later")
}

func TestThrottled(t *testing.T) {
	store, err := memstore.NewCtx(65536)
	require.NoError(t, err)
	quota := throttled.RateQuota{MaxRate: throttled.PerMin(20), MaxBurst: 5}
	rl, err := throttled.NewGCRARateLimiterCtx(store, quota)
	require.NoError(t, err)
	bucket := algo.Must(algo.NewTokenBucket(algo.PerMinute(20), algo.Burst(6), algo.MaxKeys(65536)))

	h := throttled.HTTPRateLimiterCtx{RateLimiter: rl, VaryBy: &throttled.VaryBy{RemoteAddr: true}}
	limit := httpmw.Limit(bucket, keyfunc.ClientIP())
	require.Equal(t, served(8, h.RateLimit(handler)), served(8, limit(handler)))

	limited, result, err := rl.RateLimitCtx(ctx, "alice", 1)
	lease, err2 := bucket.Acquire(ctx, "alice", 1)
	require.NoError(t, err)
	require.NoError(t, err2)
	require.Equal(t, limited, !lease.Allowed)
	require.Equal(t, int64(result.Limit), lease.Limit)
	require.Equal(t, int64(result.Remaining), lease.Remaining)
	require.InDelta(t, result.ResetAfter, lease.ResetAfter, float64(time.Second))
	_ = throttled.VaryBy{Path: true, Headers: []string{"X-User"}}
	_ = keyfunc.Join(keyfunc.Route(), keyfunc.Header("X-User"))
}

func TestUlule(t *testing.T) {
	formatted, err := ulule.NewRateFromFormatted("5-H")
	require.NoError(t, err)
	spec, err := algo.Parse("fixed-window 5/h")
	require.NoError(t, err)
	instance := ulule.New(memory.NewStore(), formatted)
	window, err := spec.New()
	require.NoError(t, err)

	middleware := stdlib.NewMiddleware(instance)
	limit := httpmw.Limit(window, keyfunc.ClientIP(), httpmw.WithHeaders(httpmw.LegacyEpoch))
	require.Equal(t, served(7, middleware.Handler(handler)), served(7, limit(handler)))

	state, err := instance.Get(ctx, "alice")
	require.NoError(t, err)
	lease, err := window.Acquire(ctx, "alice", 1)
	require.NoError(t, err)
	require.Equal(t, state.Reached, !lease.Allowed)
	require.Equal(t, state.Remaining, lease.Remaining)
	_, err = instance.Peek(ctx, "alice")
	require.NoError(t, err)
	_, err = window.Acquire(ctx, "alice", 0)
	require.NoError(t, err)
	_, err = instance.Reset(ctx, "alice")
	require.NoError(t, err)
	window.Reset("alice")
	_, err = instance.Increment(ctx, "alice", 3)
	require.NoError(t, err)
	_, err = window.Acquire(ctx, "alice", 3)
	require.NoError(t, err)
}
