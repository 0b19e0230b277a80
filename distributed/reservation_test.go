package distributed_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// slow is a rate at which next to nothing comes back during a test, although a burst fills
// within a year.
var slow = algo.Per(1, 10*time.Minute)

func reserve(t testing.TB, l *distributed.Limiter, key, id string, n int64) algo.Decision {
	t.Helper()
	return must[algo.Decision](t)(l.Reserve(ctx, key, id, n, time.Minute))
}

// TestReservations: another process settles by key and id alone, once.
func TestReservations(t *testing.T) {
	server := redistest.Start(t)
	var log bytes.Buffer
	a := must[*distributed.Limiter](t)(newStore(t, server.Client()).TokenBucket("l", slow, algo.Burst(100)))
	other := newStore(t, server.Client(), distributed.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	b := must[*distributed.Limiter](t)(other.TokenBucket("l", slow, algo.Burst(100)))
	left := func() int64 { return remote(t, a, "k", 0).Remaining }

	d := reserve(t, a, "k", "1", 60)
	require.Equal(t, algo.Decision{Allowed: true, Source: algo.SourceRemote, Limit: 100, Remaining: 40, NextAfter: d.NextAfter, ResetAfter: d.ResetAfter}, d)
	require.True(t, reserve(t, b, "k", "1", 60).Allowed, "the next process may not know that it was reserved")
	require.Equal(t, int64(40), left(), "charged once")
	require.False(t, reserve(t, a, "k", "2", 50).Allowed)
	require.ErrorIs(t, b.SettleReserved(ctx, "k", "2", 1), distributed.ErrNoReservation, "it was denied")
	require.NoError(t, b.SettleReserved(ctx, "k", "1", 25))
	require.Equal(t, int64(75), left())
	require.NoError(t, a.SettleReserved(ctx, "k", "1", 25), "repeated")
	require.ErrorIs(t, a.SettleReserved(ctx, "k", "1", 5), distributed.ErrSettled)
	require.ErrorIs(t, b.SettleReserved(ctx, "k", "1", 5), distributed.ErrSettled)
	_, err := a.Reserve(ctx, "k", "1", 60, time.Minute)
	require.ErrorIs(t, err, distributed.ErrSettled)
	require.ErrorIs(t, b.SettleReserved(ctx, "other key", "1", 0), distributed.ErrNoReservation)
	require.ErrorIs(t, b.SettleReserved(ctx, "k", "3", 0), distributed.ErrNoReservation)
	require.ErrorIs(t, b.SettleReserved(ctx, "k", "1", -1), algo.ErrCost)
	require.Equal(t, int64(75), left(), "nothing is minted")
	require.Equal(t, 1, strings.Count(log.String(), "a settlement changed nothing"), log.String())

	reserve(t, a, "k", "4", 5)
	_, err = a.Reserve(ctx, "k", "4", 6, time.Minute)
	require.ErrorIs(t, err, distributed.ErrSettled)
	require.NoError(t, b.SettleReserved(ctx, "k", "4", 15), "above the reservation")
	require.Equal(t, int64(60), left())
	reserve(t, a, "k", "5", 10)
	require.NoError(t, b.SettleReserved(ctx, "k", "5", 1<<62))
	require.Zero(t, left(), "debt")
	require.Equal(t, algo.Never, reserve(t, a, "k", "6", 101).Reason)
	require.ErrorIs(t, b.SettleReserved(ctx, "k", "6", 0), distributed.ErrNoReservation)
}

// After its life a reservation stays charged.
func TestReservationsExpire(t *testing.T) {
	t.Parallel()
	s, server := onRedis(t)
	l := must[*distributed.Limiter](t)(s.TokenBucket("l", slow, algo.Burst(100)))
	d := must[algo.Decision](t)(l.Reserve(ctx, "k", "1", 60, time.Second))
	require.True(t, d.Allowed)
	record := distributed.RedisKey("sluice", "l", "k") + ":1"
	require.Eventually(t, func() bool { return fmt.Sprint(server.Do("EXISTS", record)) == "0" }, patient, 10*time.Millisecond)
	require.ErrorIs(t, l.SettleReserved(ctx, "k", "1", 0), distributed.ErrNoReservation)
	require.Equal(t, int64(40), remote(t, l, "k", 0).Remaining)
	requireTTL(t, server)
}

func TestReservationErrors(t *testing.T) {
	server, e := redistest.Start(t), new(events)
	s := newStore(t, server.Client(), quick(e)...)
	l := must[*distributed.Limiter](t)(s.TokenBucket("l", algo.PerHour(10)))
	w := must[*distributed.Limiter](t)(s.FixedWindow("w", algo.PerHour(10)))
	for _, f := range []func() (algo.Decision, error){
		func() (algo.Decision, error) { return l.Reserve(ctx, "k", "", 1, time.Minute) },
		func() (algo.Decision, error) { return l.Reserve(ctx, "k", "1", -1, time.Minute) },
		func() (algo.Decision, error) { return l.Reserve(ctx, "k", "1", 1, time.Millisecond) },
		func() (algo.Decision, error) { return w.Reserve(ctx, "k", "1", 1, time.Minute) },
	} {
		d, err := f()
		require.Error(t, err)
		require.False(t, d.Allowed)
	}
	server.Do("SET", distributed.RedisKey("sluice", "l", "k")+":1", "text")
	_, err := l.Reserve(ctx, "k", "1", 1, time.Minute)
	require.ErrorContains(t, err, "another algorithm")
	require.ErrorContains(t, l.SettleReserved(ctx, "k", "1", 1), "another algorithm")
	server.Kill()
	_, err = l.Reserve(ctx, "k", "2", 1, time.Minute)
	require.ErrorIs(t, err, distributed.ErrUnavailable)
	require.ErrorIs(t, l.SettleReserved(ctx, "k", "2", 1), distributed.ErrUnavailable)
	require.NoError(t, l.Close())
	_, err = l.Reserve(ctx, "k", "2", 1, time.Minute)
	require.ErrorIs(t, err, distributed.ErrClosed)
}

// TestW2_TenThousandCrashes: of 12 000 jobs each may be killed at any point: before its
// reservation is known to it, between that and its settlement, or before the settlement is
// known. Most are done again by another process, some never. The remaining charges equal,
// to the unit, the settled costs and the reservations of jobs that were never settled.
func TestW2_TenThousandCrashes(t *testing.T) {
	server := redistest.Start(t)
	jobs := int64(max(cases.Count(12_000, 12_000), 6000))
	var processes []*distributed.Limiter
	for range 4 {
		s := newStore(t, server.Client())
		processes = append(processes, must[*distributed.Limiter](t)(s.TokenBucket("l", slow, algo.Burst(50_000))))
	}
	var want, repeated, abandoned atomic.Int64
	var group sync.WaitGroup
	next := new(atomic.Int64)
	for worker := range 64 {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(worker), 1))
			for i := next.Add(1); i <= jobs; i = next.Add(1) {
				id, n := fmt.Sprint(i), 1+rnd.Int64N(5)
				actual := rnd.Int64N(n + 2)
				settled := false
				for crashes := 0; !settled; crashes++ {
					l := processes[rnd.IntN(len(processes))]
					if _, err := l.Reserve(ctx, "k", id, n, time.Minute); err != nil {
						require.ErrorIs(t, err, distributed.ErrSettled)
						settled = true // by a process that was killed before it knew
						break
					}
					if rnd.IntN(2) == 0 { // killed between reserve and settle
						repeated.Add(1)
						if rnd.IntN(10) == 0 {
							break // and never done again
						}
						continue
					}
					require.NoError(t, l.SettleReserved(ctx, "k", id, actual))
					settled = rnd.IntN(3) > 0 // or killed before it knew
				}
				if settled {
					want.Add(actual)
				} else {
					abandoned.Add(1)
					want.Add(n)
				}
			}
		})
	}
	group.Wait()
	// Not by Remaining: a charge that is given back whole has weighed a little less since it was made.
	charged := (remote(t, processes[0], "k", 0).ResetAfter + slow.Period/2) / slow.Period
	require.Equal(t, want.Load(), int64(charged))
	require.Greater(t, repeated.Load(), jobs*5/6)
	t.Logf("W2: %d jobs, %d killed between reserve and settle, %d never settled: %d units charged, %d expected",
		jobs, repeated.Load(), abandoned.Load(), charged, want.Load())
}

// TestW2_FiftyKilledProcesses: 50 real processes are killed by SIGKILL somewhere between
// their start and their settlement; this one does their jobs again.
func TestW2_FiftyKilledProcesses(t *testing.T) {
	cases.Slow(t)
	if addr := os.Getenv("SLUICE_TEST_RESERVE"); addr != "" {
		reserveAndHang(t, addr, os.Getenv("SLUICE_TEST_ID"))
		return
	}
	server := redistest.Start(t)
	l := must[*distributed.Limiter](t)(newStore(t, server.Client()).TokenBucket("l", slow, algo.Burst(10_000)))
	const processes, perProcess = 50, 100
	rnd := rand.New(rand.NewPCG(1, 1))
	reserved := 0
	for i := range processes {
		id := fmt.Sprint(i)
		child := exec.Command(os.Args[0], "-test.run=^TestW2_FiftyKilledProcesses$")
		child.Env = append(os.Environ(), "SLUICE_TEST_RESERVE="+server.Addr(), "SLUICE_TEST_ID="+id)
		require.NoError(t, child.Start())
		if i%2 == 0 { // once it has reserved
			record := distributed.RedisKey("sluice", "l", "k") + ":" + id
			require.Eventually(t, func() bool { return fmt.Sprint(server.Do("EXISTS", record)) == "1" }, 30*time.Second, time.Millisecond)
		} else {
			time.Sleep(time.Duration(rnd.Int64N(int64(100 * time.Millisecond))))
		}
		require.NoError(t, child.Process.Kill())
		require.Error(t, child.Wait())
		if fmt.Sprint(server.Do("EXISTS", distributed.RedisKey("sluice", "l", "k")+":"+id)) == "1" {
			reserved++
		}
	}
	charged := func() int64 { return 10_000 - remote(t, l, "k", 0).Remaining }
	require.Equal(t, int64(reserved*perProcess), charged(), "a killed process has reserved once or not at all")
	for i := range processes {
		reserve(t, l, "k", fmt.Sprint(i), perProcess)
		require.NoError(t, l.SettleReserved(ctx, "k", fmt.Sprint(i), int64(i)))
	}
	require.Equal(t, int64(processes*(processes-1)/2), charged())
	t.Logf("W2: %d of %d killed processes had reserved; all are settled, nothing is charged twice", reserved, processes)
}

func reserveAndHang(t *testing.T, addr, id string) {
	c := redis.NewClient(&redis.Options{Addr: addr})
	l := must[*distributed.Limiter](t)(newStore(t, c).TokenBucket("l", slow, algo.Burst(10_000)))
	for { // until it is killed
		reserve(t, l, "k", id, 100)
		time.Sleep(time.Millisecond)
	}
}
