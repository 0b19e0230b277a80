package meter_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

func start(t require.TestingT, l algo.Limiter, n, block int64) *meter.Meter {
	m, err := meter.Start(bg, l, "k", n, block)
	require.NoError(t, err)
	return m
}

func reserve(t require.TestingT, m *meter.Meter, n int64) algo.Decision {
	d, err := m.Reserve(bg, n)
	require.NoError(t, err)
	return d
}

// counting counts the calls that reach a limiter.
func counting(l algo.Limiter, calls *int) algo.Limiter {
	return limiterFunc(func(ctx context.Context, key string, n int64) (algo.Lease, error) {
		*calls++
		return l.Acquire(ctx, key, n)
	})
}

func TestMeterReservesInBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, calls := bucket(algo.PerMinute(1000)), 0
		m := start(t, counting(l, &calls), 100, 50)
		for range 25 { // 250 units
			require.True(t, reserve(t, m, 10).Allowed)
			m.Use(10)
		}
		require.Equal(t, 4, calls, "the start and three blocks")
		require.EqualValues(t, 250, m.Used())
		m.Use(60) // 60 more than reserved
		require.EqualValues(t, 690, peek(t, l, "k").Remaining)
		require.True(t, reserve(t, m, 20).Allowed)
		require.EqualValues(t, 640, peek(t, l, "k").Remaining, "a block")
		m.Close()
		require.EqualValues(t, 690, peek(t, l, "k").Remaining)
		m.Use(5)
		m.Settle(0)
		m.Close()
		require.False(t, reserve(t, m, 5).Allowed)
		require.EqualValues(t, 690, peek(t, l, "k").Remaining, "after the end")
		require.EqualValues(t, 310, m.Used())
	})
}

// TestMeterDenials: where a block does not fit, the needed units may. A denial
// charges nothing, and its RetryAfter suffices. Units used after a denial are
// debt.
func TestMeterDenials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bucket(algo.PerSecond(10), algo.Burst(100))
		m := start(t, l, 60, 50)
		m.Use(60)
		require.True(t, reserve(t, m, 30).Allowed, "30 of a block of 50")
		require.EqualValues(t, 10, peek(t, l, "k").Remaining)
		m.Use(30)
		d := reserve(t, m, 20)
		require.False(t, d.Allowed)
		require.Equal(t, time.Second, d.RetryAfter)
		require.EqualValues(t, 10, peek(t, l, "k").Remaining)
		time.Sleep(d.RetryAfter)
		require.True(t, reserve(t, m, 20).Allowed)
		m.Use(20 + 15) // 15 become debt
		m.Close()
		lease := must(t, l, "k", 1)
		require.False(t, lease.Allowed)
		require.Equal(t, 1600*time.Millisecond, lease.RetryAfter)

		denied := start(t, l, 1, 1)
		require.False(t, denied.Allowed)
		denied.Use(1000)
		require.False(t, reserve(t, denied, 1).Allowed)
		require.Equal(t, 1600*time.Millisecond, reserve(t, denied, 1).RetryAfter)
		denied.Close()
		require.Equal(t, lease.RetryAfter, must(t, l, "k", 1).RetryAfter)
	})
}

// TestMeterDenialTakesNothing: what was reserved before a denial stays reserved.
func TestMeterDenialTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bucket(algo.PerMinute(100))
		m := start(t, l, 50, 0)
		require.True(t, reserve(t, m, 60).Allowed)
		m.Use(10)
		for range 3 {
			require.False(t, reserve(t, m, 150).Allowed)
			require.EqualValues(t, 40, peek(t, l, "k").Remaining)
			time.Sleep(time.Nanosecond)
		}
		require.True(t, must(t, l, "k", 40).Allowed)
		m.Use(50)
		require.LessOrEqual(t, peek(t, l, "k").ResetAfter, time.Minute, "no debt")
		m.Close()
	})
}

// TestMeterGivesBackWhatStillWeighs: after ten minutes the first charge weighs
// nothing any more, and the rest of a block of five seconds ago weighs a part.
func TestMeterGivesBackWhatStillWeighs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bucket(algo.PerSecond(10), algo.Burst(1000))
		m := start(t, l, 500, 100)
		time.Sleep(10 * time.Minute)
		m.Use(500)
		require.True(t, reserve(t, m, 1).Allowed)
		time.Sleep(5 * time.Second)
		require.EqualValues(t, 950, peek(t, l, "k").Remaining)
		m.Close()
		require.EqualValues(t, 1000, peek(t, l, "k").Remaining, "50 of 99 unused units still weigh")

		m = start(t, l, 500, 100)
		m.Use(480)
		m.Settle(200)
		require.EqualValues(t, 800, peek(t, l, "k").Remaining, "the upstream reports less")
		m = start(t, l, 100, 100)
		for range 30 {
			require.True(t, reserve(t, m, 10).Allowed)
			m.Use(10)
		}
		require.EqualValues(t, 500, peek(t, l, "k").Remaining)
		m.Settle(50)
		require.EqualValues(t, 700, peek(t, l, "k").Remaining, "the two latest blocks come back, the first stays")
		time.Sleep(time.Hour)
		m = start(t, l, 100, 100)
		m.Settle(350)
		require.EqualValues(t, 650, peek(t, l, "k").Remaining, "the upstream reports more")
	})
}

// TestW1_MetersSettleExactly: whatever meters do at one instant, the remaining
// charge equals their use; with reservations before each use it never exceeds the
// burst.
func TestW1_MetersSettleExactly(t *testing.T) {
	rnd := rand.New(rand.NewPCG(91, 92))
	for range cases.Count(2_000, 100_000) {
		synctest.Test(t, func(t *testing.T) {
			burst := 1 + rnd.Int64N(500)
			l := bucket(algo.PerMinute(1), algo.Burst(burst))
			var sum int64
			for range 1 + rnd.IntN(4) {
				m := start(t, l, rnd.Int64N(50), rnd.Int64N(60))
				for range rnd.IntN(10) {
					if n := rnd.Int64N(40); m.Allowed && reserve(t, m, n).Allowed {
						m.Use(n - rnd.Int64N(n+1))
					}
				}
				m.Close()
				sum += m.Used()
			}
			require.LessOrEqual(t, sum, burst)
			require.Equal(t, burst-sum, peek(t, l, "k").Remaining)
		})
	}
}

// TestS3_MeterMisuse: negative and absurd usage, another limit, and an upstream
// that reports twice mint nothing.
func TestS3_MeterMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bucket(algo.PerHour(100))
		for _, n := range [][2]int64{{-1, 1}, {1, -1}} {
			_, err := meter.Start(bg, l, "k", n[0], n[1])
			require.ErrorIs(t, err, algo.ErrCost)
		}
		m := start(t, l, 10, 0)
		_, err := m.Reserve(bg, -1)
		require.ErrorIs(t, err, algo.ErrCost)
		meter.ResetWarnings()
		says := captureLog(t, func() {
			m.Use(-5)
			m.Use(math.MinInt64)
			m.Settle(-1)
		})
		require.Equal(t, 1, strings.Count(says, "algo.negative_usage"))
		require.EqualValues(t, 90, peek(t, l, "k").Remaining)
		m.Use(math.MaxInt64)
		m.Use(math.MaxInt64)
		require.EqualValues(t, int64(math.MaxInt64), m.Used())
		require.False(t, reserve(t, m, math.MaxInt64).Allowed)
		m.Settle(math.MaxInt64)
		m.Settle(0)
		require.Zero(t, peek(t, l, "k").Remaining, "the largest debt of a key")

		failing := errors.New("away")
		_, err = meter.Start(bg, limiterFunc(func(context.Context, string, int64) (algo.Lease, error) { return algo.Lease{}, failing }), "k", 1, 1)
		require.ErrorIs(t, err, failing)
		huge := start(t, bucket(algo.PerHour(100)), 0, 1000) // a block that never fits
		require.True(t, reserve(t, huge, 60).Allowed)
		require.Equal(t, algo.Never, reserve(t, huge, 1000).Reason)
	})
}

// A meter settles several limits in the same unit, and each gets back the rest.
func TestMeterOfSeveralLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		minute, day := bucket(algo.PerMinute(1000)), algo.Must(algo.NewFixedWindow(algo.PerDay(5000), algo.Zone("UTC")))
		m := start(t, algo.All(minute, day), 100, 200)
		m.Use(80)
		require.True(t, reserve(t, m, 100).Allowed)
		m.Use(110)
		m.Close()
		require.EqualValues(t, 810, peek(t, minute, "k").Remaining)
		require.EqualValues(t, 4810, peek(t, day, "k").Remaining)
	})
}

func TestMeterAllocatesNothing(t *testing.T) {
	m := start(t, bucket(algo.PerSecond(1e9)), 0, 64)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if d, err := m.Reserve(bg, 20); err == nil && d.Allowed {
			m.Use(20)
		}
	}))
}

func BenchmarkMeter(b *testing.B) {
	m := start(b, bucket(algo.PerSecond(1e9)), 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		if d, err := m.Reserve(bg, 20); err == nil && d.Allowed {
			m.Use(20)
		}
	}
}

// A stream of tokens ends where the limit is spent.
func ExampleMeter() {
	tokens := algo.Must(algo.NewTokenBucket(algo.PerHour(100)))
	ctx := context.Background()

	m, err := meter.Start(ctx, tokens, "ann", 40, 25)
	if err != nil || !m.Allowed {
		return
	}
	defer m.Close()
	for _, chunk := range []int64{30, 30, 30, 30, 30} {
		d, err := m.Reserve(ctx, chunk)
		if err != nil || !d.Allowed {
			fmt.Println("stopped:", d.Reason)
			break
		}
		m.Use(chunk)
		fmt.Println("sent:", m.Used())
	}
	// Output:
	// sent: 30
	// sent: 60
	// sent: 90
	// stopped: quota
}

// The upstream reports the true cost at the end.
func ExampleStart() {
	tokens := algo.Must(algo.NewTokenBucket(algo.PerHour(1000)))
	ctx := context.Background()

	m, err := meter.Start(ctx, tokens, "ann", 300, 100)
	if err != nil || !m.Allowed {
		return
	}
	m.Use(250)    // counted in the chunks
	m.Settle(210) // reported

	left, _ := tokens.Acquire(ctx, "ann", 0)
	fmt.Println(left.Remaining)
	// Output: 790
}
