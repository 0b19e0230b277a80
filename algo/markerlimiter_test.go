package algo_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// A late cancel refunds the remaining weight, and settling up and down moves
// the charged bucket.
func TestMarkerLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := algo.NewSRTCM(algo.PerSecond(1), 10, 5)
		require.NoError(t, err)
		l := algo.FromMarker(m, algo.Yellow)
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
		d, ok := algo.Describe(l)
		require.True(t, ok)
		require.Equal(t, algo.Description{Quota: 15, Window: 15 * s}, d)
	})
}

func TestMarkerKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := algo.NewTRTCM(algo.PerSecond(1), 1, algo.PerSecond(1), 1, algo.MaxKeys(1), algo.DenyNew())
		require.NoError(t, err)
		mark := func(key string, in algo.Color) algo.Color {
			out, err := m.Mark(ctx, key, 1, in)
			require.NoError(t, err)
			return out
		}
		require.Equal(t, algo.Green, mark("a", algo.Green))
		require.Equal(t, algo.Red, mark("a", algo.Green))
		require.Equal(t, algo.Red, mark("b", algo.Color(200)), "no color is redder")
		require.Equal(t, 1, m.Len())
		m.Reset("a")
		require.Equal(t, algo.Green, mark("a", algo.Green))
		time.Sleep(s + 1)
		require.Zero(t, m.Len())
		out, err := m.Mark(ctx, "a", -1, algo.Green)
		require.ErrorIs(t, err, algo.ErrCost)
		require.Equal(t, algo.Red, out)
		require.Zero(t, testing.AllocsPerRun(100, func() { mark("a", algo.Green) }))
	})
}

// fixed is a marker of another package.
type fixed struct {
	color algo.Color
	err   error
}

func (f fixed) Mark(context.Context, string, int64, algo.Color) (algo.Color, error) {
	return f.color, f.err
}

func TestFromMarkerOfOthers(t *testing.T) {
	l := algo.FromMarker(fixed{color: algo.Yellow}, algo.Green)
	require.Equal(t, s, acquire(t, l, "k", 1).RetryAfter)
	require.True(t, acquire(t, l, "k", 0).Allowed)
	require.True(t, acquire(t, algo.FromMarker(fixed{color: algo.Yellow}, algo.Yellow), "k", 1).Allowed)
	_, err := l.Acquire(ctx, "k", -1)
	require.ErrorIs(t, err, algo.ErrCost)
	down := errors.New("down")
	_, err = algo.FromMarker(fixed{err: down}, algo.Red).Acquire(ctx, "k", 1)
	require.ErrorIs(t, err, down)
	require.Panics(t, func() { algo.FromMarker(nil, algo.Green) })
	require.Panics(t, func() { algo.FromMarker(fixed{}, 3) })
	require.Equal(t, "green yellow red unknown",
		algo.Green.String()+" "+algo.Yellow.String()+" "+algo.Red.String()+" "+algo.Color(3).String())
}

// A denial by color charges no bucket: limiters of two colors over one marker.
func TestFromMarkerDenialChargesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := algo.NewSRTCM(algo.PerSecond(1), 2, 3)
		require.NoError(t, err)
		strict, lax := algo.FromMarker(m, algo.Green), algo.FromMarker(m, algo.Yellow)
		require.True(t, acquire(t, strict, "k", 2).Allowed)
		for range 10 {
			require.Equal(t, s, acquire(t, strict, "k", 1).RetryAfter)
		}
		require.True(t, acquire(t, lax, "k", 3).Allowed)
		require.Equal(t, 5*s, acquire(t, lax, "k", 3).RetryAfter, "two fill the committed bucket, three spill")
		require.True(t, acquire(t, algo.FromMarker(m, algo.Red), "k", 1000).Allowed)
	})
}
