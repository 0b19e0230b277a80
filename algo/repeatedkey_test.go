package algo_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// A denial of two requests for one key, between requests for others, says when both fit.
func TestDenialOfARepeatedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := algo.Must(algo.NewTokenBucket(algo.PerSecond(1), algo.Burst(4)))
		other := algo.Must(algo.NewTokenBucket(algo.PerSecond(1), algo.Burst(4)))
		require.True(t, algo.Must(bucket.Acquire(t.Context(), "k", 4)).Allowed)
		lease, err := algo.AcquireAll(t.Context(),
			algo.Request{Limiter: bucket, Key: "k", N: 1}, algo.Request{Limiter: other, Key: "k", N: 1}, algo.Request{Limiter: bucket, Key: "k", N: 2})
		require.NoError(t, err)
		require.False(t, lease.Allowed)
		require.Equal(t, 3*time.Second, lease.RetryAfter)
	})
}
