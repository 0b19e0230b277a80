package strategy_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive/strategy"
)

func newWindow(t testing.TB, span time.Duration, buckets int) *strategy.Window {
	t.Helper()
	w, err := strategy.NewWindow(span, buckets)
	require.NoError(t, err)
	return w
}

// TestWindowMaxPass: 100, 200, ... 1000 completions, one value a bucket.
func TestWindowMaxPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWindow(t, time.Second, 10)
		for i := 1; i <= 10; i++ {
			for range i * 100 {
				w.Add(time.Millisecond)
			}
			time.Sleep(100 * time.Millisecond)
		}
		require.Equal(t, int64(1000), w.MaxPass())
		require.InDelta(t, 10_000, w.MaxRate(), 1e-6)
	})
}

// TestWindowMinRT: durations of 1..10, 11..20, ... a bucket; the smallest mean
// is 5.5.
func TestWindowMinRT(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWindow(t, time.Second, 10)
		for i := range 10 {
			for j := 1; j <= 10; j++ {
				w.Add(time.Duration(10*i+j) * time.Millisecond)
			}
			if i < 9 {
				time.Sleep(100 * time.Millisecond)
			}
		}
		require.Equal(t, 5500*time.Microsecond, w.MinRT())
	})
}

func TestWindowLeavesTheCurrentBucketOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWindow(t, time.Second, 4)
		require.Zero(t, w.MaxPass())
		require.Zero(t, w.MinRT())
		w.Add(time.Millisecond)
		require.Zero(t, w.MaxPass())
		time.Sleep(250 * time.Millisecond)
		require.Equal(t, int64(1), w.MaxPass())
		for range 9 {
			w.Add(time.Microsecond)
		}
		require.Equal(t, int64(1), w.MaxPass())
		require.Equal(t, time.Millisecond, w.MinRT())
	})
}

// TestWindowForgets: nothing older than the span counts, after any pause, also without
// additions and readings.
func TestWindowForgets(t *testing.T) {
	for _, pause := range []time.Duration{time.Second, 1500 * time.Millisecond, time.Hour, 24 * 365 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w := newWindow(t, time.Second, 5)
			for range 3 {
				w.Add(time.Millisecond)
			}
			time.Sleep(pause)
			require.Zero(t, w.MaxPass(), "%v", pause)
			require.Zero(t, w.MinRT())
			w.Add(time.Minute)
			time.Sleep(200 * time.Millisecond)
			require.Equal(t, int64(1), w.MaxPass())
			require.Equal(t, time.Minute, w.MinRT())
		})
	}
}

// TestWindowWithLongBuckets: buckets of more than a second have a rate.
func TestWindowWithLongBuckets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWindow(t, time.Minute, 6)
		for range 200 {
			w.Add(50 * time.Microsecond)
			time.Sleep(100 * time.Millisecond)
		}
		require.InDelta(t, 100, w.MaxPass(), 1)
		require.InDelta(t, 10, w.MaxRate(), .1)
		require.Equal(t, 50*time.Microsecond, w.MinRT())
	})
}

// TestWindowAgainstAList compares with a list of all that was added.
func TestWindowAgainstAList(t *testing.T) {
	type sample struct {
		bucket int64
		rtt    time.Duration
	}
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(3, 4))
		for _, buckets := range []int{2, 3, 7, 50} {
			const width = 7 * time.Millisecond
			w := newWindow(t, width*time.Duration(buckets), buckets)
			// Buckets begin at multiples of the width since the epoch, which
			// is not known here: the first change of an estimate shows one.
			w.Add(time.Second)
			for w.MaxPass() == 0 {
				time.Sleep(time.Microsecond)
			}
			start := time.Now() // at most 1 us late, and pauses are multiples of 10 us
			time.Sleep(width * time.Duration(buckets))
			var all []sample
			for range 3000 {
				at := int64(time.Since(start) / width)
				var n, sum [100]int64
				for _, s := range all {
					if age := at - s.bucket; age > 0 && age < int64(buckets) {
						n[age]++
						sum[age] += int64(s.rtt)
					}
				}
				pass, least := int64(0), int64(0)
				for i := range n {
					if n[i] > 0 {
						if mean := (sum[i] + n[i] - 1) / n[i]; least == 0 || mean < least {
							least = mean
						}
						pass = max(pass, n[i])
					}
				}
				require.Equal(t, pass, w.MaxPass())
				require.Equal(t, time.Duration(least), w.MinRT())
				if rnd.IntN(3) > 0 {
					rtt := time.Duration(1 + rnd.Int64N(1e6))
					w.Add(rtt)
					all = append(all, sample{at, rtt})
				}
				if rnd.IntN(3) == 0 {
					time.Sleep(10 * time.Microsecond * time.Duration(rnd.Int64N(2100)))
				}
				if len(all) > 200 {
					all = all[100:]
				}
			}
		}
	})
}

// TestWindowCountsEverything: concurrent additions are neither lost nor
// counted twice.
func TestWindowCountsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWindow(t, time.Second, 2)
		time.Sleep(500 * time.Millisecond)
		w.Add(time.Microsecond) // begins the bucket: meanwhile others count into the one before
		var done sync.WaitGroup
		for range 8 {
			done.Go(func() {
				for range 1000 {
					w.Add(time.Microsecond)
				}
			})
		}
		done.Wait()
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, int64(8001), w.MaxPass())
		require.Equal(t, time.Microsecond, w.MinRT())
	})
}

func TestWindowErrors(t *testing.T) {
	for _, row := range []struct {
		span    time.Duration
		buckets int
		want    string
	}{
		{time.Second, 1, "buckets is 1"}, {time.Second, 0, "buckets is 0"}, {time.Second, -5, "buckets is -5"},
		{time.Second, 1 << 17, "buckets is 131072"},
		{0, 10, "span of 0s"}, {-time.Second, 10, "span of -1s"}, {9 * time.Microsecond, 10, "width is 900ns"},
		{3 * time.Hour, 2, "width is 1h30m0s"},
	} {
		_, err := strategy.NewWindow(row.span, row.buckets)
		require.ErrorContains(t, err, row.want)
	}
}

func TestWindowAllocations(t *testing.T) {
	w := newWindow(t, 200*time.Microsecond, 100) // turns all the time
	require.Zero(t, testing.AllocsPerRun(10_000, func() {
		w.Add(time.Millisecond)
		w.MaxPass()
		w.MinRT()
	}))
}

func BenchmarkWindow(b *testing.B) {
	b.Run("add", func(b *testing.B) {
		b.ReportAllocs()
		w := newWindow(b, 10*time.Second, 100)
		for b.Loop() {
			w.Add(time.Millisecond)
		}
	})
	b.Run("add/parallel", func(b *testing.B) {
		b.ReportAllocs()
		w := newWindow(b, 10*time.Second, 100)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				w.Add(time.Millisecond)
			}
		})
	})
}
