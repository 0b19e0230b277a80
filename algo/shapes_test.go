package algo_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func TestShapeErrors(t *testing.T) {
	r := algo.PerSecond(10)
	for want, err := range map[string]error{
		`leaky bucket: burst is 0`:                           second(algo.NewLeakyBucket(r, algo.Burst(0))),
		`leaky bucket: does not take the option MaxWait`:     second(algo.NewLeakyBucket(r, algo.MaxWait(1))),
		`leaky bucket: rate: count is 0`:                     second(algo.NewLeakyBucket(algo.PerSecond(0))),
		`pacer: slack is -1`:                                 second(algo.NewPacer(r, algo.Slack(-1))),
		`pacer: slack is 9223372036854775807: at 10/s`:       second(algo.NewPacer(r, algo.Slack(math.MaxInt64))),
		`pacer: max queue is -1`:                             second(algo.NewPacer(r, algo.MaxQueue(-1))),
		`pacer: max wait is -1ns`:                            second(algo.NewPacer(r, algo.MaxWait(-1))),
		`pacer: does not take the option Burst`:              second(algo.NewPacer(r, algo.Burst(1))),
		`pacer: rate: period is -1ns`:                        second(algo.NewPacer(algo.Per(1, -1))),
		`nginx: burst is -1`:                                 second(algo.NewNginx(r, algo.Burst(-1))),
		`nginx: burst is 9223372036854775807: at 10/s`:       second(algo.NewNginx(r, algo.Burst(math.MaxInt64))),
		`nginx: delay after is -2`:                           second(algo.NewNginx(r, algo.DelayAfter(-2))),
		`nginx: delay after is 2, and NoDelay`:               second(algo.NewNginx(r, algo.DelayAfter(2), algo.NoDelay())),
		`nginx: does not take the option MaxWait`:            second(algo.NewNginx(r, algo.MaxWait(1))),
		`smooth bursty: burst is -1`:                         second(algo.NewSmoothBursty(r, algo.Burst(-1))),
		`smooth bursty: max wait is -1s`:                     second(algo.NewSmoothBursty(r, algo.MaxWait(-s))),
		`smooth bursty: does not take the option ColdFactor`: second(algo.NewSmoothBursty(r, algo.ColdFactor(2))),
		`smooth warming up: cold factor is 1, want more`:     second(algo.NewSmoothWarmingUp(r, s, algo.ColdFactor(1))),
		`smooth warming up: cold factor is NaN`:              second(algo.NewSmoothWarmingUp(r, s, algo.ColdFactor(math.NaN()))),
		`smooth warming up: cold factor is +Inf`:             second(algo.NewSmoothWarmingUp(r, 0, algo.ColdFactor(math.Inf(1)))),
		`smooth warming up: warmup is -1s`:                   second(algo.NewSmoothWarmingUp(r, -s)),
		`smooth warming up: warmup is 8760h0m0s`:             second(algo.NewSmoothWarmingUp(r, 8760*time.Hour)),
		`smooth warming up: max wait is -1ns`:                second(algo.NewSmoothWarmingUp(r, s, algo.MaxWait(-1))),
		`smooth warming up: rate: count is -3`:               second(algo.NewSmoothWarmingUp(algo.PerSecond(-3), s)),
		`smooth warming up: does not take the option Burst`:  second(algo.NewSmoothWarmingUp(r, s, algo.Burst(3))),
		`srTCM: cir: rate: count is 0`:                       second(algo.NewSRTCM(algo.PerSecond(0), 1, 1)),
		`srTCM: cbs and ebs are both 0`:                      second(algo.NewSRTCM(r, 0, 0)),
		`srTCM: cbs is -1`:                                   second(algo.NewSRTCM(r, -1, 1)),
		`srTCM: ebs is -1`:                                   second(algo.NewSRTCM(r, 1, -1)),
		`srTCM: cbs is 9223372036854775807: too much`:        second(algo.NewSRTCM(r, math.MaxInt64, 1)),
		`srTCM: cbs is 100000: at 1/h`:                       second(algo.NewSRTCM(algo.PerHour(1), 100000, 1)),
		`srTCM: does not take the option Burst`:              second(algo.NewSRTCM(r, 1, 1, algo.Burst(1))),
		`srTCM: max keys is 0`:                               second(algo.NewSRTCM(r, 1, 1, algo.MaxKeys(0))),
		`trTCM: pir is 9/s, slower than cir, which is 10/s`:  second(algo.NewTRTCM(r, 1, algo.PerSecond(9), 1)),
		`trTCM: pir: rate: count is 0`:                       second(algo.NewTRTCM(r, 1, algo.PerSecond(0), 1)),
		`trTCM: cbs is 0`:                                    second(algo.NewTRTCM(r, 0, r, 1)),
		`trTCM: pbs is 0`:                                    second(algo.NewTRTCM(r, 1, r, 0)),
		`trTCM: pbs is -4`:                                   second(algo.NewTRTCM(r, 1, r, -4)),
		`RFC 4115: cbs and ebs are both 0`:                   second(algo.NewRFC4115(r, 0, r, 0)),
		`RFC 4115: eir: rate: count is 0`:                    second(algo.NewRFC4115(r, 1, algo.PerSecond(0), 1)),
		`RFC 4115: ebs is -1`:                                second(algo.NewRFC4115(r, 1, algo.PerSecond(1), -1)),
	} {
		require.ErrorContains(t, err, "algo: "+want)
	}
}

func second[T any](_ T, err error) error { return err }

func TestPacerQueueIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewPacer(algo.PerSecond(1), algo.MaxQueue(3)))
		for i := range 4 { // one starts, three wait
			require.Equal(t, time.Duration(i)*s, acquire(t, l, "k", 1).Delay)
		}
		denied := acquire(t, l, "k", 1)
		require.False(t, denied.Allowed)
		require.Equal(t, s, denied.RetryAfter)
		time.Sleep(s - 1)
		require.Equal(t, time.Duration(1), acquire(t, l, "k", 1).RetryAfter)
		time.Sleep(1)
		require.Equal(t, 3*s, acquire(t, l, "k", 1).Delay)
		require.False(t, acquire(t, l, "k", 1).Allowed)
		require.Equal(t, algo.Never, acquire(t, l, "k", 5).Reason)
	})
}

func TestPacerQueueDefaults(t *testing.T) {
	waits := func(opts ...algo.Option) (n int64) {
		l := algo.Must(algo.NewPacer(algo.PerSecond(10), opts...))
		for acquire(t, l, "", 1).Allowed {
			n++
		}
		return n - 1
	}
	synctest.Test(t, func(t *testing.T) {
		require.EqualValues(t, 10, waits(), "one period")
		require.EqualValues(t, 25, waits(algo.MaxQueue(25)))
		require.EqualValues(t, 30, waits(algo.MaxWait(3*s)))
		require.EqualValues(t, 25, waits(algo.MaxWait(3*s), algo.MaxQueue(25)))
		require.EqualValues(t, 30, waits(algo.MaxWait(3*s), algo.MaxQueue(math.MaxInt64)))
		require.EqualValues(t, 12, waits(algo.Slack(2)), "three start at once")
		require.EqualValues(t, 0, waits(algo.MaxWait(0)))

		l := algo.Must(algo.NewPacer(algo.PerSecond(10)))
		require.NoError(t, l.SetRate(algo.Every(time.Minute)))
		require.True(t, acquire(t, l, "", 1).Allowed)
		require.Equal(t, time.Minute, acquire(t, l, "", 1).Delay, "the line follows the period")
		require.Equal(t, time.Minute, acquire(t, l, "", 1).RetryAfter)
	})
}

// Departures of many callers are the emission interval apart.
func TestPacerDepartures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewPacer(algo.PerSecond(4), algo.MaxQueue(50)))
		began := time.Now()
		var mu sync.Mutex
		var starts []time.Duration
		var group sync.WaitGroup
		for i := range 30 {
			group.Go(func() {
				time.Sleep(time.Duration(i*i) * time.Millisecond)
				_, err := algo.Wait(ctx, l, "k", 1)
				require.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				starts = append(starts, time.Since(began))
			})
		}
		group.Wait()
		for i := range starts[1:] {
			require.GreaterOrEqual(t, starts[i+1]-starts[i], 250*time.Millisecond)
		}
		require.Equal(t, 29*250*time.Millisecond, starts[29])
	})
}

// tryAcquire(n, timeout): those whose turn comes within the timeout wait and
// are served in order, the others are told at once.
func TestSeveralCallersWithinTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewSmoothBursty(algo.PerSecond(4), algo.MaxWait(s)))
		began := time.Now()
		var mu sync.Mutex
		served := map[time.Duration]int{}
		denied := 0
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				lease, err := l.Acquire(ctx, "k", 1)
				require.NoError(t, err)
				require.NoError(t, algo.Sleep(ctx, lease.Delay))
				mu.Lock()
				defer mu.Unlock()
				if !lease.Allowed {
					denied++
					require.Zero(t, time.Since(began))
					return
				}
				served[time.Since(began)]++
			})
		}
		group.Wait()
		ms := time.Millisecond
		require.Equal(t, map[time.Duration]int{0: 1, 250 * ms: 1, 500 * ms: 1, 750 * ms: 1, 1000 * ms: 1}, served)
		require.Equal(t, 5, denied)
	})
}

// A hundred waits that are canceled, in whatever order, leave the next caller
// as if they had never come.
func TestCanceledWaitsOfShapes(t *testing.T) {
	forever := algo.MaxWait(algo.Forever)
	for name, make := range map[string]func() algo.Limiter{
		"pacer":         func() algo.Limiter { return algo.Must(algo.NewPacer(algo.PerSecond(1), algo.MaxQueue(100))) },
		"nginx":         func() algo.Limiter { return algo.Must(algo.NewNginx(algo.PerSecond(1), algo.Burst(100))) },
		"smooth bursty": func() algo.Limiter { return algo.Must(algo.NewSmoothBursty(algo.PerSecond(1), forever)) },
		"warming up":    func() algo.Limiter { return algo.Must(algo.NewSmoothWarmingUp(algo.PerSecond(1), 1, forever)) },
	} {
		for order, at := range map[string]func(i int) int{
			"first to last": func(i int) int { return i },
			"last to first": func(i int) int { return 99 - i },
			"shuffled":      func(i int) int { return i * 37 % 100 },
		} {
			t.Run(name+"/"+order, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := make()
					require.Zero(t, acquire(t, l, "", 1).Delay)
					var waits [100]algo.Lease
					for i := range waits {
						waits[i] = acquire(t, l, "", 1)
						require.InDelta(t, time.Duration(i+1)*s, waits[i].Delay, 2)
					}
					time.Sleep(s / 2)
					for i := range waits {
						waits[at(i)].Release(algo.Canceled)
					}
					require.InDelta(t, s/2, acquire(t, l, "", 1).Delay, 2)
				})
			})
		}
	}
}

func TestNginxSetBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewNginx(algo.PerSecond(2), algo.Burst(5), algo.DelayAfter(3)))
		require.NoError(t, l.SetBurst(1))
		require.True(t, l.Allow("", 2), "the delay parameter is above the burst: nothing is delayed")
		require.False(t, acquire(t, l, "", 1).Allowed)
		require.NoError(t, l.SetBurst(9))
		require.True(t, l.Allow("", 2))
		require.Equal(t, s/2, acquire(t, l, "", 1).Delay)
		require.NoError(t, l.SetRate(algo.PerSecond(4)))
		require.ErrorContains(t, l.SetBurst(-1), "nginx: burst is -1")
	})
}

// Guava's setRate: what is owed stays, what is saved scales.
func TestSmoothBurstySetRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewSmoothBursty(algo.PerSecond(10), algo.MaxWait(algo.Forever)))
		require.Equal(t, int64(11), acquire(t, l, "", 0).Limit)
		time.Sleep(s / 2)
		require.Equal(t, int64(6), acquire(t, l, "", 0).Remaining, "five saved")
		require.NoError(t, l.SetRate(algo.PerSecond(20)))
		require.Equal(t, int64(11), acquire(t, l, "", 0).Remaining, "ten saved")
		require.Equal(t, int64(21), acquire(t, l, "", 0).Limit)

		acquire(t, l, "", 50) // ten saved, forty are two seconds
		require.NoError(t, l.SetRate(algo.PerSecond(1)))
		require.Equal(t, 2*s, acquire(t, l, "", 1).Delay)
		require.NoError(t, l.SetRate(algo.PerSecond(100)))
		require.Equal(t, 3*s, acquire(t, l, "", 1).Delay)
		require.Error(t, l.SetRate(algo.PerSecond(0)))
	})
}

func TestSmoothBurstySaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewSmoothBursty(algo.PerSecond(2), algo.Burst(6)))
		for _, key := range []string{"", "k"} {
			require.Equal(t, int64(1), acquire(t, l, key, 0).Remaining, "nothing is saved at first")
		}
		time.Sleep(time.Minute)
		for _, key := range []string{"", "k", "new"} {
			require.Equal(t, int64(7), acquire(t, l, key, 0).Remaining)
			require.True(t, l.Allow(key, 6))
			require.True(t, l.Allow(key, 1), "nothing is owed yet")
			require.False(t, l.Allow(key, 1))
			require.Equal(t, s/2, acquire(t, l, key, 100).RetryAfter)
		}
		require.NoError(t, l.SetBurst(0))
		time.Sleep(time.Hour)
		require.True(t, l.Allow("", 1))
		require.False(t, l.Allow("", 1))
		require.Equal(t, algo.Never, acquire(t, l, "", math.MaxInt64).Reason)
	})
}

// Without a warm-up it is a SmoothBursty; in Guava the division by zero limits
// nothing.
func TestNoWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := algo.MaxWait(3 * s)
		a := algo.Must(algo.NewSmoothWarmingUp(algo.PerSecond(5), 0, wait, algo.ColdFactor(7)))
		b := algo.Must(algo.NewSmoothBursty(algo.PerSecond(5), wait))
		for i := range int64(60) {
			require.Equal(t, acquire(t, b, "k", i%9).Decision, acquire(t, a, "k", i%9).Decision)
			time.Sleep(time.Duration(i%7) * s / 3)
		}
		require.NoError(t, a.SetRate(algo.PerSecond(1)))
		require.Equal(t, 1, a.Len())
		_, ok := algo.Describe(a)
		require.True(t, ok)
	})
}

func TestWarmingUpSetRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewSmoothWarmingUp(algo.PerSecond(2), 4*s, algo.MaxWait(algo.Forever)))
		require.Zero(t, acquire(t, l, "k", 4).Delay) // from cold to the threshold
		require.NoError(t, l.SetRate(algo.PerSecond(4)))
		require.Equal(t, 4*s, acquire(t, l, "k", 1).Delay, "what is owed stays")
		require.Equal(t, 4*s+s/4, acquire(t, l, "k", 1).Delay, "and it is still half warm")
		require.Error(t, l.SetRate(algo.PerSecond(0)))
		d, ok := algo.Describe(l)
		require.True(t, ok)
		require.Equal(t, algo.Description{Quota: 1, Window: s / 4}, d)
	})
}

// Guava's microseconds run 4 % fast at 80 000 a second.
func TestWarmingUpAccuracy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []int64{3, 80_000, 600_000_000} {
			l := algo.Must(algo.NewSmoothWarmingUp(algo.PerSecond(rate), 1, algo.MaxWait(algo.Forever)))
			acquire(t, l, "", 3*rate)
			owed := acquire(t, l, "", 0).ResetAfter
			require.GreaterOrEqual(t, owed, 3*s-3, "never faster")
			require.Less(t, owed, 3*s+s/50)
		}
	})
}

func TestWarmingUpSettleAndReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewSmoothWarmingUp(algo.PerSecond(1), 1, algo.MaxWait(algo.Forever)))
		lease := acquire(t, l, "k", 10)
		lease.Settle(4)
		require.InDelta(t, 4*s, acquire(t, l, "k", 0).ResetAfter, 2)
		lease.Settle(7)
		require.InDelta(t, 7*s, acquire(t, l, "k", 0).ResetAfter, 2)
		require.Equal(t, 1, l.Len())
		l.Reset("k")
		require.Zero(t, acquire(t, l, "k", 0).ResetAfter)
		lease.Release(algo.Canceled)
		require.True(t, l.Allow("k", 3))
		require.False(t, l.Allow("k", 1))
		require.False(t, l.Allow("k", -1))
		_, err := l.Acquire(ctx, "k", -1)
		require.ErrorIs(t, err, algo.ErrCost)
		require.Equal(t, algo.Never, acquire(t, l, "k", 1<<31).Reason)
		require.Zero(t, l.Overflowed())
	})
}

// A late cancel gives back what still weighs, and settling up and down moves
// the bucket that was charged.
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
		require.EqualValues(t, 10, left(), "two more are owed to the excess bucket")
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
	type keyed interface {
		Len() int
		Reset(key string)
	}
	synctest.Test(t, func(t *testing.T) {
		m, err := algo.NewTRTCM(algo.PerSecond(1), 1, algo.PerSecond(1), 1, algo.MaxKeys(1), algo.OnFull(algo.DenyNew))
		require.NoError(t, err)
		mark := func(key string, in algo.Color) algo.Color {
			out, err := m.Mark(ctx, key, 1, in)
			require.NoError(t, err)
			return out
		}
		require.Equal(t, algo.Green, mark("a", algo.Green))
		require.Equal(t, algo.Red, mark("a", algo.Green))
		require.Equal(t, algo.Red, mark("b", algo.Color(200)), "no color is redder")
		require.Equal(t, 1, m.(keyed).Len())
		m.(keyed).Reset("a")
		require.Equal(t, algo.Green, mark("a", algo.Green))
		time.Sleep(s + 1)
		require.Zero(t, m.(keyed).Len())
		out, err := m.Mark(ctx, "a", -1, algo.Green)
		require.ErrorIs(t, err, algo.ErrCost)
		require.Equal(t, algo.Red, out)
		require.Zero(t, testing.AllocsPerRun(100, func() { mark("a", algo.Green) }))
	})
}

// fixed is a marker of somebody else's.
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
