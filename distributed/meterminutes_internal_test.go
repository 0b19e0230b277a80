package distributed

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// tenMinutes runs a stream of ten minutes that uses 20 units every 400 ms, while others charge
// as much as the limit allows besides, and reports less at its end than it has used. It
// returns the remaining units in every second, before the end and after it.
func tenMinutes(t *testing.T, l algo.Limiter, sleep func(time.Duration)) (left []int64) {
	look := func() int64 {
		lease, err := l.Acquire(context.Background(), "k", 0)
		require.NoError(t, err)
		left = append(left, lease.Remaining)
		return lease.Remaining
	}
	charge := func(n int64) {
		lease, err := l.Acquire(context.Background(), "k", n)
		require.NoError(t, err)
		require.True(t, lease.Allowed)
	}
	charge(12_000) // of the burst of 20 000
	m, err := meter.Start(context.Background(), l, "k", 4000, 100)
	require.NoError(t, err)
	for n := range 1497 {
		sleep(400 * time.Millisecond)
		charge(646)
		d, err := m.Reserve(context.Background(), 20)
		require.NoError(t, err)
		require.True(t, d.Allowed)
		if m.Use(20); n%5 == 0 {
			look()
		}
	}
	before := look()
	m.Settle(m.Used() - 90)
	require.Equal(t, before+60+90, look(), "60 of the last block, and 90 that were not used after all")
	return left
}

// longReservation reserves 30 000 units of 60 000 an hour for a stream of ten minutes, in which
// 10 000 refill, and uses 5000. Others have debt before it.
func longReservation(t *testing.T, l algo.Limiter, sleep func(time.Duration), others, want int64) {
	_, err := l.Acquire(context.Background(), "long", others)
	require.NoError(t, err)
	m, err := meter.Start(context.Background(), l, "long", 30_000, 100)
	require.NoError(t, err)
	require.True(t, m.Allowed)
	sleep(10 * time.Minute)
	m.Settle(5000)
	lease, err := l.Acquire(context.Background(), "long", 0)
	require.NoError(t, err)
	require.Equal(t, want, lease.Remaining)
}

// TestL2_StreamOfTenMinutes: at its end a stream gives back the remaining weight of its
// charges, to the unit, the same locally and on a real server.
func TestL2_StreamOfTenMinutes(t *testing.T) {
	client := redistest.Start(t).Client()
	clock := useVirtualClock(t, client)
	store, err := New(client, WithTimeout(5*time.Second), WithInstances(1), WithDenyCache(0), WithFallback(FallbackDeny),
		WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	minute, hour := algo.PerMinute(100_000), algo.PerHour(60_000)

	remote, err := store.TokenBucket("minute", minute, algo.Burst(20_000))
	require.NoError(t, err)
	onRedis := tenMinutes(t, remote, clock.sleep)
	var local []int64
	synctest.Test(t, func(t *testing.T) {
		local = tenMinutes(t, algo.Must(algo.NewTokenBucket(minute, algo.Burst(20_000))), time.Sleep)
	})
	require.Equal(t, local, onRedis)
	t.Logf("L2: %d readings of the remaining units agree, the last ones %v", len(local), local[len(local)-2:])

	for others, want := range map[int64]int64{
		0:      60_000, // 20 000 of the 25 000 unused come back: 10 000 have drained
		20_000: 45_000, // all: the drained units were the others'
	} {
		remote, err := store.TokenBucket("hour", hour)
		require.NoError(t, err)
		longReservation(t, remote, clock.sleep, others, want)
		require.NoError(t, remote.Reset(t.Context(), "long"))
		require.NoError(t, remote.Close())
		synctest.Test(t, func(t *testing.T) {
			longReservation(t, algo.Must(algo.NewTokenBucket(hour)), time.Sleep, others, want)
		})
	}
}
