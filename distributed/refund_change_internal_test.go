package distributed

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// changes are limits, and what they are changed to in use: units that weigh before still weigh.
var changes = [][2]string{
	{"10/h", "5/h burst 10"},
	{"10/h burst 20", "10/h burst 20 wait 1m"},
	{"pacer 10/h slack 9", "pacer 5/h slack 9"},
	{"fixed-window 10/h", "fixed-window 4/h"},
	{"fixed-window 10/h", "fixed-window 20/h"},
	{"fixed-window 10/h", "fixed-window 10/d"},
	{"fixed-window 10/d", "fixed-window 10/h"},
	{"fixed-window 10/d", "fixed-window 4/h"},
	{"fixed-window 10/d zone UTC", "fixed-window 4/week zone UTC"},
	{"fixed-window 10/month zone UTC", "fixed-window 10/d zone UTC"},
	{"fixed-window 10/d zone UTC", "fixed-window 10/month zone UTC"},
}

// changing is a limiter whose limit is changed in use.
type changing struct {
	algo.Limiter
	change func(algo.Spec) error
	refund func(n int64) (int64, error)
	sleep  func(time.Duration)
}

// remaining spends units, changes the limit, gives n units back twice, and returns each time the
// units that came back and those that remain.
func (l changing) remaining(t *testing.T, spent, n int64, to algo.Spec) (left []int64) {
	l.sleep(90 * time.Second) // not at an edge
	lease, err := l.Acquire(context.Background(), "k", 1)
	require.NoError(t, err)
	require.True(t, lease.Allowed)
	lease.Settle(spent)
	require.NoError(t, l.change(to))
	for range 2 {
		given, err := l.refund(n)
		require.NoError(t, err)
		peek, err := l.Acquire(context.Background(), "k", 0)
		require.NoError(t, err)
		left = append(left, given, peek.Remaining)
	}
	return left
}

// TestL2_RefundAfterAChangeAsLocally: without a lease the same units are given back on Redis as
// in the process, as the first call after a change of the limit too.
func TestL2_RefundAfterAChangeAsLocally(t *testing.T) {
	client := redistest.Start(t).Client()
	clock := useVirtualClock(t, client)
	store, err := New(client, WithTimeout(5*time.Second), WithInstances(1), WithDenyCache(0), WithFallback(FallbackDeny),
		WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	sequence := func(t *testing.T, from, to algo.Spec, spent, n int64) {
		var local []int64
		synctest.Test(t, func(t *testing.T) {
			l := algo.Must(from.New())
			local = changing{l, func(s algo.Spec) error { return s.Apply(l) },
				func(n int64) (int64, error) { return l.Refund("k", n) }, time.Sleep}.
				remaining(t, spent, n, to)
		})
		require.NoError(t, client.FlushDB(t.Context()).Err())
		clock.now = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		clock.sleep(0)
		l, err := store.Limiter("a", from)
		require.NoError(t, err)
		if w, ok := l.load().(*calendarWindow); ok {
			w.clock = func() time.Time { return clock.now }
		}
		remote := changing{l, func(s algo.Spec) error {
			err := s.Apply(l)
			if w, ok := l.load().(*calendarWindow); ok {
				w.clock = func() time.Time { return clock.now }
			}
			return err
		}, func(n int64) (int64, error) { return l.Refund(t.Context(), "k", n) }, clock.sleep}.remaining(t, spent, n, to)
		require.NoError(t, l.Close())
		require.Equal(t, local, remote, "%d spent, %d given back twice", spent, n)
	}
	for _, c := range changes {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			from, to := algo.Must(algo.Parse(c[0])), algo.Must(algo.Parse(c[1]))
			for _, spent := range []int64{1, 4, 10, 13} {
				for _, n := range []int64{0, 1, 3, 7, math.MaxInt64} {
					sequence(t, from, to, spent, n)
				}
			}
		})
	}
}
