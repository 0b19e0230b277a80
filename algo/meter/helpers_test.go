package meter_test

import (
	"bytes"
	"context"
	"log"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

var bg, ctx = context.Background(), context.Background()

// must and peek fail the test on an error.
func must(t require.TestingT, l algo.Limiter, key string, n int64) algo.Lease {
	lease, err := l.Acquire(bg, key, n)
	require.NoError(t, err)
	return lease
}

func peek(t require.TestingT, l algo.Limiter, key string) algo.Decision {
	return must(t, l, key, 0).Decision
}

func bucket(r algo.Rate, opts ...algo.Option) *algo.RateLimiter {
	return algo.Must(algo.NewTokenBucket(r, opts...))
}

// limiterFunc is a limiter that other packages might write.
type limiterFunc func(ctx context.Context, key string, n int64) (algo.Lease, error)

func (f limiterFunc) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	return f(ctx, key, n)
}

// captureLog returns what is logged.
func captureLog(t *testing.T, fn func()) string {
	t.Helper()
	var out bytes.Buffer
	defer log.SetOutput(log.Writer())
	log.SetOutput(&out)
	fn()
	return out.String()
}
