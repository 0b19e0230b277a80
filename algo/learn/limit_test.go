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
		wait := l.Stats("k").Wait
		require.Equal(t, time.Hour, wait)
		wait = l.Stats("other").Wait
		require.Zero(t, wait)
		within, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err := algo.Wait(within, l, "k", 1)
		require.ErrorIs(t, err, algo.ErrWait)
		require.ErrorContains(t, err, "1h0m0s")
		_, err = algo.Wait(ctx, l, "k", 1)
		require.NoError(t, err)
		wait = l.Stats("k").Wait
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
		rate := l.Stats("k").Rate
		require.Less(t, rate, 2.)
	})
}

// The answer to one of few calls does not make many of them.
func TestNoAnswerMoreThanDoublesTheRate(t *testing.T) {
	l := learn.New(algo.PerMinute(1))
	for _, perMinute := range []float64{2, 4, 8} {
		l.Answered("k", learn.Answer{Sent: time.Now()})
		rate := l.Stats("k").Rate
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
		wait := l.Stats("0").Wait
		require.Zero(t, wait)
	})
}

// Stats say what is known of a key and of all together, and the last answer that taught it.
func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := learn.New(algo.PerSecond(10))
		require.Equal(t, learn.Stats{}, l.Stats())
		require.Equal(t, learn.Stats{Rate: 10}, l.Stats("a"))
		l.Answered("a", learn.Answer{Sent: time.Now(), Units: 1})
		require.Zero(t, l.Stats("a").Taught, "an admission is no news")
		denied := learn.Answer{Sent: time.Now(), Units: 3, Denied: true, Wait: 2 * time.Second}
		l.Answered("a", denied)
		stated := learn.Answer{Sent: time.Now().Add(time.Millisecond), Units: 1, Rate: 7}
		l.Answered("b", stated)
		l.Answered("b", learn.Answer{Sent: time.Now().Add(time.Second), Units: 1, Rate: 7})
		l.Answered("b", learn.Answer{Sent: time.Now().Add(time.Second), Units: 1})

		a, b, all := l.Stats("a"), l.Stats("b"), l.Stats()
		require.Equal(t, learn.Stats{Rate: a.Rate, Wait: 2 * time.Second, Waits: 1, Denied: 3, Taught: denied}, a)
		require.Less(t, a.Rate, 20.)
		require.Equal(t, learn.Stats{Rate: 7, Taught: stated}, b)
		require.Equal(t, learn.Stats{Rate: a.Rate + 7, Wait: 2 * time.Second, Waits: 1, Denied: 3, Taught: stated}, all)

		require.Equal(t, "7 a second, 0 denied, 0 waits; at 00:00:00 an answer, stated 7 a second", b.String())
		require.Regexp(t, `^[0-9.]+ a second, not before 2s, 3 denied, 1 waits; at 00:00:00 an answer denied, asked for 2s$`, a.String())
		require.Equal(t, "10 a second", l.Stats("c").String())
	})
}
