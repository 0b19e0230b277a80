package guides_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// newAPI is the code under test. Its limiter is a parameter.
func newAPI(perUser algo.Limiter) http.Handler {
	return authenticate(httpmw.Limit(perUser, keyfunc.Context(userOf), httpmw.WithName("user"))(ok))
}

// The clock of a bubble moves when all of its goroutines sleep, so an hour takes
// no time.
func TestQuotaComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(algo.Must(algo.NewTokenBucket(algo.PerHour(1))))
		require.Equal(t, 200, get(api, "/", "key-a").Code)
		require.Equal(t, 429, get(api, "/", "key-a").Code)
		require.Equal(t, 200, get(api, "/", "key-b").Code)

		time.Sleep(time.Hour - time.Nanosecond)
		require.Equal(t, 429, get(api, "/", "key-a").Code)
		time.Sleep(time.Nanosecond)
		require.Equal(t, 200, get(api, "/", "key-a").Code)
	})
}

// hand is a clock that a test moves.
type hand struct{ nanos atomic.Int64 }

func (h *hand) now() time.Time          { return time.Unix(0, h.nanos.Load()) }
func (h *hand) advance(d time.Duration) { h.nanos.Add(int64(d)) }

// Over sockets, and beside other tests.
func TestQuotaOverASocket(t *testing.T) {
	t.Parallel()
	clock := &hand{}
	perUser := algo.Must(algo.NewTokenBucket(algo.PerHour(1), algo.Clock(clock.now)))
	api := httptest.NewServer(newAPI(perUser))
	defer api.Close()
	require.Equal(t, 200, call(t, api.URL, "key-a"))
	require.Equal(t, 429, call(t, api.URL, "key-a"))
	clock.advance(time.Hour)
	require.Equal(t, 200, call(t, api.URL, "key-a"))
}

// call sends a request with an API key.
func call(t *testing.T, url, apiKey string) int {
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	require.NoError(t, err)
	r.Header.Set("X-Api-Key", apiKey)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// The answers that a limiter can give, without waiting for it to give them.
func TestAPIWhenLimited(t *testing.T) {
	require.Equal(t, 200, get(newAPI(algo.Unlimited()), "/", "key-a").Code)
	require.Equal(t, 429, get(newAPI(algo.DenyAll()), "/", "key-a").Code)
	require.Equal(t, 503, get(newAPI(overloaded), "/", "key-a").Code)
	require.Equal(t, 503, get(newAPI(broken), "/", "key-a").Code)
}

// fake is a limiter that answers as the function says.
type fake func(key string, n int64) (algo.Decision, error)

// Acquire makes fake an algo.Limiter.
func (f fake) Acquire(_ context.Context, key string, n int64) (algo.Lease, error) {
	d, err := f(key, n)
	return algo.Lease{Decision: d}, err
}

var overloaded = fake(func(string, int64) (algo.Decision, error) {
	return algo.Decision{Reason: algo.Overload, RetryAfter: time.Second}, nil
})

var broken = fake(func(string, int64) (algo.Decision, error) {
	return algo.Decision{}, context.DeadlineExceeded
})

// record admits everything and records settlements and releases.
type record struct {
	settled []int64
	ended   []algo.Outcome
}

func (r *record) Acquire(context.Context, string, int64) (algo.Lease, error) {
	return algo.NewLease(algo.Decision{Allowed: true}, r, algo.Handle{}), nil
}
func (r *record) Settle(_ algo.Handle, actual int64)    { r.settled = append(r.settled, actual) }
func (r *record) Release(_ algo.Handle, o algo.Outcome) { r.ended = append(r.ended, o) }

// A limiter of one's own against the conformance kit.
func TestOwnLimiter(t *testing.T) {
	algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
		return algo.NewTokenBucket(r, opts...) // yours
	}, algotest.Bound{Units: func(r algo.Rate, w time.Duration) int64 {
		return r.Count + 1 + int64(w.Seconds()/r.Period.Seconds()*float64(r.Count))
	}})
}

// The code under test settles once and releases once.
func TestWhatIsSettled(t *testing.T) {
	leases := &record{}
	limit := httpmw.Limit(leases, keyfunc.Global(), httpmw.WithLeaseInContext())
	work := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { algo.LeaseFrom(r.Context()).Settle(7) })
	get(limit(work), "/", "key-a")
	require.Equal(t, []int64{7}, leases.settled)
	require.Equal(t, []algo.Outcome{algo.Succeeded}, leases.ended)
}
