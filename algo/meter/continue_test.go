package meter_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// TestW1_MetersOnLeases: a meter that goes on with a lease charges the used units.
// However the owner of the lease releases it, no units are created.
func TestW1_MetersOnLeases(t *testing.T) {
	rnd := rand.New(rand.NewPCG(96, 97))
	for range cases.Count(2_000, 100_000) {
		synctest.Test(t, func(t *testing.T) {
			const others = 40
			burst := 100 + rnd.Int64N(500)
			l, day := bucket(algo.PerMinute(1), algo.Burst(burst)), bucket(algo.PerHour(5000))
			must(t, l, "k", others)
			estimate := rnd.Int64N(50)
			lease, part := leaseOf(t, rnd, l, day, estimate)
			m := meter.Continue(l, part, rnd.Int64N(60))
			require.True(t, m.Allowed)
			for range rnd.IntN(10) {
				if n := rnd.Int64N(40); reserve(t, m, n).Allowed {
					m.Use(n - rnd.Int64N(n+1))
				}
			}
			m.Close()
			require.Equal(t, burst-others-m.Used(), peek(t, l, "k").Remaining)
			blocks := max(m.Used()-estimate, 0)
			lease.Release(algo.Canceled)
			left := peek(t, l, "k").Remaining
			require.GreaterOrEqual(t, left, burst-others-m.Used())
			require.LessOrEqual(t, left, burst-others-blocks, "at most the first charge comes back")
		})
	}
}

// leaseOf acquires n units of l by itself, or beside another limit, and returns the
// lease to release and the one of l.
func leaseOf(t *testing.T, rnd *rand.Rand, l, other algo.Limiter, n int64) (lease, part *algo.Lease) {
	if rnd.IntN(2) == 0 {
		lease := must(t, l, "k", n)
		return &lease, &lease
	}
	all, err := algo.AcquireAll(bg, algo.Request{Limiter: other, Key: "j", N: 1}, algo.Request{Limiter: l, Key: "k", N: n})
	require.NoError(t, err)
	return &all, all.Part(1)
}

// A lease without a charge makes a meter that admits everything, or nothing.
func TestContinueNoCharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bucket(algo.PerHour(10))
		free := must(t, algo.Unlimited(), "k", 5)
		for _, lease := range []*algo.Lease{new(algo.Lease), &free} {
			m := meter.Continue(l, lease, 10)
			require.True(t, m.Allowed)
			require.True(t, reserve(t, m, 1000).Allowed)
			m.Use(1000)
			m.Close()
			require.EqualValues(t, 1000, m.Used())
		}
		require.EqualValues(t, 10, peek(t, l, "k").Remaining)
		denied := must(t, l, "k", 11)
		m := meter.Continue(l, &denied, 10)
		require.False(t, m.Allowed)
		require.False(t, reserve(t, m, 1).Allowed)

		whole := must(t, algo.All(l, bucket(algo.PerDay(100))), "k", 3)
		m = meter.Continue(l, &whole, -1)
		m.Use(2)
		m.Close()
		require.EqualValues(t, 8, peek(t, l, "k").Remaining, "3 were charged, 2 are used")
	})
}

// A limit that is off or on trial, beside another one, takes nothing from its meter.
func TestContinueBesideATrial(t *testing.T) {
	spent, off := bucket(algo.PerHour(1)), algo.NewSwitch(bucket(algo.PerHour(1)))
	must(t, spent, "k", 1)
	off.Off()
	for name, other := range map[string]algo.Limiter{"trial": algo.Shadow(spent), "off": off} {
		l := bucket(algo.PerHour(100))
		both := algo.All(other, l)
		lease := must(t, both, "k", 10)
		m := meter.Continue(both, &lease, 10)
		require.True(t, reserve(t, m, 30).Allowed, name)
		m.Use(25)
		m.Close()
		require.EqualValues(t, 75, peek(t, l, "k").Remaining, name)
	}
}

// The delay of a reservation is slept once, not before each chunk.
func TestMeterDelaysOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewPacer(algo.PerSecond(10), algo.MaxWait(time.Minute)))
		m := start(t, l, 1, 5)
		m.Use(1)
		require.Positive(t, reserve(t, m, 1).Delay)
		m.Use(1)
		require.Zero(t, reserve(t, m, 1).Delay, "of the same block")
	})
}

// A middleware has charged an estimate, and the handler goes on with it.
func ExampleContinue() {
	tokens := algo.Must(algo.NewTokenBucket(algo.PerHour(1000)))
	lease, err := tokens.Acquire(context.Background(), "ann", 100)
	if err != nil || !lease.Allowed {
		return
	}
	defer lease.Release(algo.Succeeded)

	m := meter.Continue(tokens, &lease, 50)
	defer m.Close()
	if d, err := m.Reserve(context.Background(), 130); err != nil || !d.Allowed {
		return
	}
	m.Use(130)

	fmt.Println(m.Used(), algo.Must(tokens.Acquire(context.Background(), "ann", 0)).Remaining)
	// Output: 130 850
}
