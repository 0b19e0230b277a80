package marker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/marker"
)

const s = time.Second

var ctx = context.Background()

// acquire fails the test on an error.
func acquire(t *testing.T, l algo.Limiter, key string, n int64) algo.Lease {
	lease, err := l.Acquire(ctx, key, n)
	require.NoError(t, err)
	return lease
}

// A late cancel refunds the remaining weight, and settling up and down moves
// the charged bucket.
func TestMarkerLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := marker.NewSRTCM(algo.PerSecond(1), 10, 5)
		require.NoError(t, err)
		l := marker.Limit(m, marker.Yellow)
		left := func() int64 { return acquire(t, l, "k", 0).Remaining }
		green := acquire(t, l, "k", 10)
		yellow := acquire(t, l, "k", 5)
		require.Equal(t, algo.Never, acquire(t, l, "k", 11).Reason)
		require.Zero(t, left())
		time.Sleep(4 * s)
		require.EqualValues(t, 4, left())
		green.Release(algo.Canceled)
		require.EqualValues(t, 10, left(), "six were left of ten")
		yellow.Settle(7)
		require.EqualValues(t, 10, left(), "two more are debt of the excess bucket")
		time.Sleep(6 * s)
		require.EqualValues(t, 14, left(), "6 of the 7 spilled in, 2 of them paid the debt")
		yellow.Release(algo.Canceled)
		require.EqualValues(t, 14, left(), "too late")
		d := algo.About(l)
		require.Equal(t, algo.Description{Quota: 15, Window: 15 * s}, d)
	})
}

func TestMarkerKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := marker.NewTRTCM(algo.PerSecond(1), 1, algo.PerSecond(1), 1, algo.MaxKeys(1), algo.DenyNew())
		require.NoError(t, err)
		mark := func(key string, in marker.Color) marker.Color {
			out, err := m.Mark(ctx, key, 1, in)
			require.NoError(t, err)
			return out
		}
		require.Equal(t, marker.Green, mark("a", marker.Green))
		require.Equal(t, marker.Red, mark("a", marker.Green))
		require.Equal(t, marker.Red, mark("b", marker.Color(200)), "no color is redder")
		require.Equal(t, 1, m.Stats().Live)
		m.Reset("a")
		require.Equal(t, marker.Green, mark("a", marker.Green))
		time.Sleep(s + 1)
		require.Zero(t, m.Stats().Live)
		out, err := m.Mark(ctx, "a", -1, marker.Green)
		require.ErrorIs(t, err, algo.ErrCost)
		require.Equal(t, marker.Red, out)
		require.Zero(t, testing.AllocsPerRun(100, func() { mark("a", marker.Green) }))
	})
}

// fixed is a marker of another package.
type fixed struct {
	color marker.Color
	err   error
}

func (f fixed) Mark(context.Context, string, int64, marker.Color) (marker.Color, error) {
	return f.color, f.err
}

func TestFromMarkerOfOthers(t *testing.T) {
	l := marker.Limit(fixed{color: marker.Yellow}, marker.Green)
	require.Equal(t, s, acquire(t, l, "k", 1).RetryAfter)
	require.True(t, acquire(t, l, "k", 0).Allowed)
	require.True(t, acquire(t, marker.Limit(fixed{color: marker.Yellow}, marker.Yellow), "k", 1).Allowed)
	_, err := l.Acquire(ctx, "k", -1)
	require.ErrorIs(t, err, algo.ErrCost)
	down := errors.New("down")
	_, err = marker.Limit(fixed{err: down}, marker.Red).Acquire(ctx, "k", 1)
	require.ErrorIs(t, err, down)
	require.Panics(t, func() { marker.Limit(nil, marker.Green) })
	require.Panics(t, func() { marker.Limit(fixed{}, 3) })
	require.Equal(t, "green yellow red unknown",
		marker.Green.String()+" "+marker.Yellow.String()+" "+marker.Red.String()+" "+marker.Color(3).String())
}

// A denial by color charges no bucket: limiters of two colors over one marker.
func TestFromMarkerDenialChargesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := marker.NewSRTCM(algo.PerSecond(1), 2, 3)
		require.NoError(t, err)
		strict, lax := marker.Limit(m, marker.Green), marker.Limit(m, marker.Yellow)
		require.True(t, acquire(t, strict, "k", 2).Allowed)
		for range 10 {
			require.Equal(t, s, acquire(t, strict, "k", 1).RetryAfter)
		}
		require.True(t, acquire(t, lax, "k", 3).Allowed)
		require.Equal(t, 5*s, acquire(t, lax, "k", 3).RetryAfter, "two fill the committed bucket, three spill")
		require.True(t, acquire(t, marker.Limit(m, marker.Red), "k", 1000).Allowed)
	})
}

// TestMarkerSettleBeyondWhatABucketOwes: when a charge again exceeds the
// largest debt of a bucket, the part that was cut off is not refunded.
func TestMarkerSettleBeyondWhatABucketOwes(t *testing.T) {
	for name, c := range map[string]struct {
		make func() (*marker.ThreeColor, error)
		pass marker.Color
	}{
		"srTCM":  {func() (*marker.ThreeColor, error) { return marker.NewSRTCM(algo.PerSecond(1), 5, 0) }, marker.Green},
		"excess": {func() (*marker.ThreeColor, error) { return marker.NewSRTCM(algo.PerSecond(1), 0, 5) }, marker.Yellow},
		"trTCM":  {func() (*marker.ThreeColor, error) { return marker.NewTRTCM(algo.PerSecond(1), 5, algo.PerSecond(2), 5) }, marker.Green},
		"RFC 4115": {func() (*marker.ThreeColor, error) {
			return marker.NewRFC4115(algo.PerSecond(1), 0, algo.PerSecond(1), 5)
		}, marker.Yellow},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := marker.Limit(algo.Must(c.make()), c.pass)
				var leases [20]algo.Lease
				for i := range leases {
					leases[i] = acquire(t, l, "", 5)
					leases[i].Settle(0)
				}
				acquire(t, l, "", 5)
				for i := range leases {
					leases[i].Settle(5)
				}
				for i := range leases {
					leases[i].Release(algo.Canceled)
				}
				require.False(t, acquire(t, l, "", 1).Allowed, "5 of 5 were kept")
			})
		})
	}
}
