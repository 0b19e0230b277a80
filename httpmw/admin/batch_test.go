package admin_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw/admin"
)

// backend decides the requests to several of its kind in one step.
type backend struct {
	*algo.RateLimiter
	steps int
}

func (b *backend) Batches(_, other algo.Request) bool {
	_, ok := other.Limiter.(*backend)
	return ok
}

func (b *backend) AcquireBatch(ctx context.Context, reqs []algo.Request, leases []algo.Lease) (err error) {
	b.steps++
	for i, r := range reqs {
		if leases[i], err = r.Limiter.(*backend).Acquire(ctx, r.Key, r.N); err != nil {
			return err
		}
	}
	return nil
}

func (b *backend) PeekBatch(context.Context, []algo.Request, []algo.Lease) error { return nil }

// Behind the switch and the list of blocked keys a backend still decides in one
// step. Limits that are off, and blocked keys, are not part of it.
func TestControlKeepsTheBatch(t *testing.T) {
	a, b := &backend{RateLimiter: bucket(t, algo.PerHour(10))}, &backend{RateLimiter: bucket(t, algo.PerHour(10))}
	first, second := admin.Control(a), admin.Control(b)
	both := func() algo.Lease {
		t.Helper()
		lease, err := algo.AcquireAll(t.Context(), algo.Request{Limiter: first, Key: "ada", N: 1}, algo.Request{Limiter: second, Key: "ada", N: 1})
		require.NoError(t, err)
		return lease
	}
	lease := both()
	require.True(t, lease.Allowed)
	require.Len(t, lease.Parts(), 2)
	require.Equal(t, 1, a.steps)

	require.NoError(t, second.SwitchOff(t.Context(), time.Now().Add(time.Hour), "a test"))
	lease = both()
	require.True(t, lease.Allowed)
	require.Equal(t, algo.SourceOff, lease.Parts()[1].Source)
	require.Equal(t, 1, a.steps)
	require.NoError(t, second.SwitchOn(t.Context()))

	require.NoError(t, second.Ban(t.Context(), "ada", time.Hour))
	require.False(t, both().Allowed)
	require.Equal(t, 1, a.steps)
	require.Equal(t, int64(8), spend(t, a, "ada", 0).Remaining, "the earlier charge was refunded")
	require.Equal(t, int64(9), spend(t, b, "ada", 0).Remaining)
	require.NoError(t, second.Reset(t.Context(), "ada"))
	require.True(t, both().Allowed)
	require.Equal(t, 2, a.steps)

	about := algo.About(first)
	require.Equal(t, algo.Description{Rate: algo.PerHour(10), Quota: 10, Window: time.Hour}, about)
}
