package guides_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
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
