package algo_test

import (
	"context"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

type refunder interface {
	algo.Limiter
	Refund(key string, n int64) (int64, error)
}

// noRefund leaves the limits that give units back without a lease.
var noRefund = cases.Without{
	"smooth-bursty": "its key has spent its burst at first", "smooth-warming-up": "it has no Refund",
	"sliding-window": "it has no Refund", "sliding-log": "it has no Refund",
	"pacer wait": "its units wait, and are not spendable", "nginx delay": "its units wait, and are not spendable",
}

func eachRefunder(t *testing.T, test func(t *testing.T, key string, l refunder)) {
	for _, text := range append(cases.Limits("5/h", noRefund), "pacer 5/h slack 4") {
		for _, key := range []string{"", "k"} {
			t.Run(text+"/"+key, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, key, made(text)) })
			})
		}
	}
}

// refund gives back n units, and returns how many came back.
func refund(t require.TestingT, l refunder, key string, n int64) int64 {
	units, err := l.Refund(key, n)
	require.NoError(t, err)
	return units
}

// refuses is the error of a refund.
func refuses(l refunder, n int64) error {
	_, err := l.Refund("k", n)
	return err
}

// spendable counts the units that key may spend without a delay, and spends them.
func spendable(t require.TestingT, l algo.Limiter, key string) (n int64) {
	for {
		lease, err := l.Acquire(context.Background(), key, 1)
		require.NoError(t, err)
		if !lease.Allowed || lease.Delay > 0 {
			lease.Release(algo.Canceled)
			return n
		}
		n++
	}
}

// Units are given back without their lease, as far as they were spent, and once.
func TestRefundWithoutALease(t *testing.T) {
	eachRefunder(t, func(t *testing.T, key string, l refunder) {
		require.Zero(t, refund(t, l, key, 3), "nothing was spent")
		require.EqualValues(t, 5, spendable(t, l, key))
		require.Zero(t, refund(t, l, key, 0))
		require.EqualValues(t, 0, spendable(t, l, key))
		require.EqualValues(t, 2, refund(t, l, key, 2))
		require.EqualValues(t, 2, spendable(t, l, key))
		require.EqualValues(t, 5, refund(t, l, key, math.MaxInt64))
		require.EqualValues(t, 5, spendable(t, l, key))
		require.ErrorIs(t, refuses(l, -1), algo.ErrCost)
		require.EqualValues(t, 0, spendable(t, l, key))
	})
}

// Units that came back by themselves are not given a second time.
func TestRefundOfUnitsThatCameBack(t *testing.T) {
	eachRefunder(t, func(t *testing.T, key string, l refunder) {
		require.EqualValues(t, 5, spendable(t, l, key))
		time.Sleep(25 * time.Hour)
		lease, err := l.Acquire(context.Background(), key, 2)
		require.NoError(t, err)
		require.True(t, lease.Allowed)
		require.EqualValues(t, 2, refund(t, l, key, 5))
		require.EqualValues(t, 5, spendable(t, l, key))
	})
}

// A unit of which a part has come back by itself counts as one.
func TestRefundOfAPartOfAUnit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := algo.Must(algo.NewTokenBucket(algo.PerHour(5)))
		require.EqualValues(t, 5, spendable(t, b, "k"))
		time.Sleep(30 * time.Minute) // two and a half units
		require.EqualValues(t, 3, refund(t, b, "k", 5))
		require.EqualValues(t, 5, spendable(t, b, "k"))
	})
}

// Debt of a window's successor is given back too, and first.
func TestRefundOfDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := algo.Must(algo.NewFixedWindow(algo.PerHour(5)))
		lease, err := w.Acquire(t.Context(), "k", 1)
		require.NoError(t, err)
		lease.Settle(8)
		require.EqualValues(t, 3, refund(t, w, "k", 3))
		require.EqualValues(t, 0, spendable(t, w, "k"))
		require.EqualValues(t, 1, refund(t, w, "k", 1))
		require.EqualValues(t, 1, spendable(t, w, "k"))
		time.Sleep(time.Hour)
		require.EqualValues(t, 5, spendable(t, w, "k"))
	})
}

// The first call for a key after a change that cuts its debt gives units back like any other.
func TestRefundAfterACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, key := range []string{"", "k"} {
			b := algo.Must(algo.NewTokenBucket(algo.PerHour(10), algo.Burst(100)))
			require.EqualValues(t, 100, spendable(t, b, key))
			require.NoError(t, b.SetBurst(10)) // at most 20 units of debt
			require.EqualValues(t, 15, refund(t, b, key, 15))
			require.EqualValues(t, 5, spendable(t, b, key))
			require.EqualValues(t, 10, refund(t, b, key, 15))
			require.EqualValues(t, 10, spendable(t, b, key), "as many as were spent")

			w := algo.Must(algo.NewFixedWindow(algo.PerHour(5)))
			lease, err := w.Acquire(t.Context(), key, 1)
			require.NoError(t, err)
			lease.Settle(10)
			require.NoError(t, w.SetRate(algo.PerHour(2))) // at most 2 units of debt
			require.EqualValues(t, 6, refund(t, w, key, 6))
			require.EqualValues(t, 1, spendable(t, w, key), "2 of the debt and 4 of the 5 of the window")
		}
	})
}

// Units of a window whose period was changed are given back as far as they still count.
func TestRefundAfterAChangedPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, to := range []algo.Rate{algo.PerMinute(5), algo.PerDay(5)} {
			w := algo.Must(algo.NewFixedWindow(algo.PerHour(5)))
			require.EqualValues(t, 5, spendable(t, w, "k"))
			require.NoError(t, w.SetRate(to))
			require.EqualValues(t, 2, refund(t, w, "k", 2))
			require.EqualValues(t, 2, spendable(t, w, "k"))
			require.EqualValues(t, 5, refund(t, w, "k", 9))
			require.EqualValues(t, 5, spendable(t, w, "k"))
		}
	})
}

// unitsAt is units that were admitted and kept, or given back without a lease.
type unitsAt struct {
	at         time.Duration
	kept, back int64
}

// W1: whatever is admitted, canceled and given back: the units that are kept exceed the bound
// by no more than was given back without a lease, in the window or so far. (A lease that is
// canceled after its units were given back takes those of another one with it.)
func TestW1_RefundsWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) { // a bubble has no deadline
			limit := rapid.Int64Range(1, 9).Draw(t, "limit")
			var l refunder = algo.Must(algo.NewFixedWindow(algo.PerSecond(limit)))
			bucket := rapid.Bool().Draw(t, "bucket")
			if bucket {
				l = algo.Must(algo.NewTokenBucket(algo.PerSecond(limit)))
			}
			all := draw(t, l)
			var before int64 // given back until then
			for i := range all {
				kept, back := int64(0), before
				before += all[i].back
				if !bucket {
					back = 0
					if i > 0 && all[i].at/time.Second == all[i-1].at/time.Second {
						continue
					}
				}
				for _, e := range all[i:] {
					if !bucket && e.at/time.Second != all[i].at/time.Second {
						break
					}
					kept, back = kept+e.kept, back+e.back
					room := limit * int64(time.Second)
					if bucket {
						room += limit * int64(e.at-all[i].at)
					}
					require.LessOrEqual(t, (kept-back)*int64(time.Second), room)
				}
			}
		})
	})
}

// draw spends, cancels and gives back, on a limiter that was made just now.
func draw(t *rapid.T, l refunder) (all []unitsAt) {
	began := time.Now()
	leases := map[int]algo.Lease{} // by their places in all
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		n := rapid.Int64Range(0, 5).Draw(t, "n")
		e := unitsAt{at: time.Since(began)}
		switch rapid.SampledFrom([]string{"acquire", "acquire", "cancel", "refund", "sleep"}).Draw(t, "do") {
		case "acquire":
			lease, err := l.Acquire(context.Background(), "k", n)
			require.NoError(t, err)
			if lease.Allowed {
				e.kept = n
				leases[len(all)] = lease
			}
		case "cancel":
			place := rapid.IntRange(0, len(all)).Draw(t, "place")
			if lease, ok := leases[place]; ok {
				lease.Release(algo.Canceled)
				all[place].kept = 0
				delete(leases, place)
			}
		case "refund":
			require.LessOrEqual(t, refund(t, l, "k", n), n)
			e.back = n
		case "sleep":
			time.Sleep(time.Duration(n) * 117 * time.Millisecond) // never at an edge: 23.4 s at most
		}
		all = append(all, e)
	}
	return all
}

// Refunds beside charges: no more is admitted than the limit and what was given back.
func TestW1_RefundsWithoutALeaseBesideCharges(t *testing.T) {
	for _, text := range cases.Limits("5/h", noRefund) {
		if strings.Contains(text, "wait") { // later units are admitted with a delay
			continue
		}
		l := made(text)
		var admitted atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 300 {
					if lease, err := l.Acquire(context.Background(), "k", 1); err == nil && lease.Allowed {
						admitted.Add(1)
					}
				}
			})
			all.Go(func() {
				for range 100 {
					_, _ = l.Refund("k", 1)
				}
			})
		}
		all.Wait()
		require.LessOrEqual(t, admitted.Load(), int64(5+400), text)
		require.GreaterOrEqual(t, admitted.Load(), int64(5), text)
	}
}
