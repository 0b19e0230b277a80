package adaptive_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// crowd sends requests of all five classes in turn, from different users, to a limiter
// of 20 slots, for 100 ms each, and returns the admitted share of each class in the
// second half.
func crowd(t *testing.T, l *adaptive.Limiter, rate int, d time.Duration) (share [5]float64) {
	var asked, admitted [5]float64
	n := int(d.Seconds() * float64(rate))
	for i := range n {
		time.Sleep(time.Second / time.Duration(rate))
		class := i % 5
		ctx := adaptive.WithClass(background, adaptive.Class(class))
		lease, err := l.Acquire(ctx, "user-"+strconv.Itoa(i%997), 1)
		require.NoError(t, err)
		if i > n/2 {
			asked[class]++
		}
		if lease.Allowed {
			if i > n/2 {
				admitted[class]++
			}
			go func() {
				time.Sleep(100 * time.Millisecond)
				lease.Release(algo.Succeeded)
			}()
		}
	}
	for i := range share {
		share[i] = admitted[i] / asked[i]
	}
	time.Sleep(time.Second)
	return share
}

// TestPriorities: at 2.5 times the capacity, two classes pass in full and the last
// two not at all.
func TestPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, adaptive.Fixed(20), adaptive.WithPriorities())
		share := crowd(t, l, 500, 20*time.Second)
		require.Greater(t, share[adaptive.Critical], .9, "%v", share)
		require.Greater(t, share[adaptive.High], .8, "%v", share)
		require.Less(t, share[adaptive.Low], .1, "%v", share)
		require.Less(t, share[adaptive.Sheddable], .1, "%v", share)
		require.Positive(t, l.Explain().Denied.Priority)
		require.Zero(t, l.InFlight())

		plain := crowd(t, newLimiter(t, adaptive.Fixed(20)), 500, 20*time.Second)
		require.Less(t, plain[adaptive.Critical], .6, "without priorities all classes are equal")
	})
}

// TestPrioritiesWithRoom: nothing is shed while all requests fit, before and after
// overload.
func TestPrioritiesWithRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, adaptive.Fixed(20), adaptive.WithPriorities())
		for range 2 {
			for class, share := range crowd(t, l, 100, 20*time.Second) {
				require.Equal(t, 1.0, share, "%v", adaptive.Class(class))
			}
			crowd(t, l, 1000, 5*time.Second)
		}
	})
}

// TestPrioritiesWithoutKeys: requests without a key are spread over the
// cohorts, so a class is shed in part.
func TestPrioritiesWithoutKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, adaptive.Fixed(20), adaptive.WithPriorities())
		passed := 0
		for i := range 20_000 {
			time.Sleep(time.Second / 400)
			lease, err := l.Acquire(context.Background(), "", 1)
			require.NoError(t, err)
			if lease.Allowed {
				if i >= 10_000 {
					passed++
				}
				go func() {
					time.Sleep(100 * time.Millisecond)
					lease.Release(algo.Succeeded)
				}()
			}
		}
		require.InDelta(t, .5, float64(passed)/10_000, .07, "half of the requests fit")
		time.Sleep(time.Second)
	})
}

func TestNextShare(t *testing.T) {
	require.Equal(t, .75, adaptive.NextShare(1, 50, 50, 100), "half way to the admitted share")
	require.Equal(t, .3, adaptive.NextShare(.3, 40, 1, 100), "never up after a denial")
	require.InDelta(t, .52, adaptive.NextShare(.5, 50, 0, 100), 1e-9)
	require.Equal(t, 1.0, adaptive.NextShare(.99, 50, 0, 100))
	require.Equal(t, 1.0, adaptive.NextShare(1, 0, 0, 0))
}
