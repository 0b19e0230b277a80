package distributed_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

var ctx = context.Background()

// patient is a timeout for tests that are not about timeouts: the machine may
// be busy.
const patient = 5 * time.Second

// newStore makes a store that is closed when the test ends.
func newStore(t testing.TB, c redis.UniversalClient, opts ...distributed.Option) *distributed.Store {
	t.Helper()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	all := append([]distributed.Option{
		distributed.WithLogger(quiet), distributed.WithTimeout(patient), distributed.WithDenyCache(0),
	}, opts...)
	s, err := distributed.New(c, all...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// onRedis makes a store on a server of its own.
func onRedis(t testing.TB, opts ...distributed.Option) (*distributed.Store, *redistest.Server) {
	t.Helper()
	server := redistest.Start(t)
	return newStore(t, server.Client(), opts...), server
}

func acquire(t testing.TB, l algo.Limiter, key string, n int64) algo.Lease {
	t.Helper()
	lease, err := l.Acquire(ctx, key, n)
	require.NoError(t, err)
	return lease
}

// remote acquires and insists that Redis decided.
func remote(t testing.TB, l algo.Limiter, key string, n int64) algo.Lease {
	t.Helper()
	lease := acquire(t, l, key, n)
	require.Equal(t, algo.SourceRemote, lease.Source, "%+v", lease.Decision)
	return lease
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}
