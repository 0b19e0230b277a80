package learn_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
)

var ctx = context.Background()

// starts counts the calls that start within d.
func starts(t *testing.T, l *learn.Limit, d time.Duration) (n int) {
	for end := time.Now().Add(d); ; n++ {
		waiting, cancel := context.WithDeadline(ctx, end)
		_, err := algo.Wait(waiting, l, "k", 1)
		cancel()
		if err != nil {
			time.Sleep(time.Until(end))
			return n
		}
	}
}

func TestNoBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := learn.New(algo.PerSecond(10))
		time.Sleep(time.Hour)
		require.InDelta(t, 10, starts(t, l, time.Second), 1)
	})
}

func TestWaitsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := learn.New(algo.PerSecond(10))
		l.Answered("k", learn.Answer{Sent: time.Now(), Denied: true, Wait: time.Hour})
		l.Answered("k", learn.Answer{Sent: time.Now(), Denied: true, Wait: time.Second}) // never shortens it
		_, wait := l.Rate("k")
		require.Equal(t, time.Hour, wait)
		_, wait = l.Rate("other")
		require.Zero(t, wait)
		within, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err := algo.Wait(within, l, "k", 1)
		require.ErrorIs(t, err, algo.ErrWait)
		require.ErrorContains(t, err, "1h0m0s")
		_, err = algo.Wait(ctx, l, "k", 1)
		require.NoError(t, err)
		_, wait = l.Rate("k")
		require.Zero(t, wait)
	})
}

// After a wait one call finds out whether the server is open again.
func TestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := learn.New(algo.PerSecond(100))
		l.Answered("k", learn.Answer{Sent: time.Now(), Denied: true, Wait: time.Second})
		time.Sleep(time.Second)
		sent := time.Now()
		require.Equal(t, 1, starts(t, l, 500*time.Millisecond))
		l.Answered("k", learn.Answer{Sent: sent})
		require.Greater(t, starts(t, l, 500*time.Millisecond), 20)
	})
}

func TestStatedRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := learn.New(algo.PerSecond(10))
		l.Answered("k", learn.Answer{Sent: time.Now(), Rate: 50})
		require.InDelta(t, 50, starts(t, l, time.Second), 1)
		l.Answered("k", learn.Answer{Sent: time.Now(), Rate: 2})
		require.LessOrEqual(t, starts(t, l, 2*time.Second), 4)
		for range 3 { // the server denies what it states
			l.Answered("k", learn.Answer{Sent: time.Now(), Rate: 2, Denied: true})
			time.Sleep(5 * time.Second)
		}
		rate, _ := l.Rate("k")
		require.Less(t, rate, 2.)
	})
}

// The answer to one of few calls does not make many of them.
func TestNoAnswerMoreThanDoublesTheRate(t *testing.T) {
	l := learn.New(algo.PerMinute(1))
	for _, perMinute := range []float64{2, 4, 8} {
		l.Answered("k", learn.Answer{Sent: time.Now()})
		rate, _ := l.Rate("k")
		require.InDelta(t, perMinute/60, rate, 1e-9)
	}
}

func TestCanceledCallsTakeNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := learn.New(algo.PerSecond(1))
		for range 100 {
			lease, err := l.Acquire(ctx, "k", 1)
			require.NoError(t, err)
			require.True(t, lease.Allowed)
			lease.Release(algo.Canceled)
		}
		lease, err := l.Acquire(ctx, "k", 5)
		require.NoError(t, err)
		require.True(t, lease.Allowed)
		lease.Settle(2)
		lease, err = l.Acquire(ctx, "k", 0)
		require.NoError(t, err)
		require.InDelta(t, 2, lease.NextAfter.Seconds(), .1)
		lease, err = l.Acquire(ctx, "k", 1)
		require.NoError(t, err)
		require.Equal(t, algo.Quota, lease.Reason)
		_, err = l.Acquire(ctx, "k", -1)
		require.ErrorIs(t, err, algo.ErrCost)
	})
}

func TestKeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := learn.New(algo.Rate{})
		l.Answered("0", learn.Answer{Sent: time.Now(), Denied: true, Wait: time.Hour})
		for i := range 1024 {
			time.Sleep(time.Second)
			_, err := l.Acquire(ctx, string(rune('a'+i)), 1)
			require.NoError(t, err)
		}
		_, wait := l.Rate("0")
		require.Zero(t, wait)
	})
}
