package distributed_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// gone is a transport to a Redis that does not exist.
type gone struct{}

func (gone) Cluster() bool { return false }

func (gone) Slots(context.Context, string) ([]distributed.SlotRange, error) { return nil, nil }

func (gone) Do(_ context.Context, cmds []*distributed.Command) {
	for _, c := range cmds {
		c.Done(nil, distributed.ErrNotSent)
	}
}

// oneOf is the store of one of n instances without Redis. All of them decide alike, so the
// fleet admits n times as much as one.
func oneOf(t *testing.T, n int, opts ...distributed.Option) *distributed.Store {
	all := append([]distributed.Option{distributed.WithInstances(n), distributed.ProbeEvery(time.Hour), distributed.WithLogger(slog.New(slog.DiscardHandler))}, opts...)
	s, err := distributed.NewWithTransport(gone{}, distributed.Last(all)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// An instance without Redis is never without a share: no fresh key is denied for longer than
// its cost takes at R/N, each RetryAfter is kept, and all instances together admit at most
// max(B, N) + R*t since the outage began.
func TestW3_SharesAreNeverNothing(t *testing.T) {
	kinds := map[string]func(s *distributed.Store, burst int64, r algo.Rate) (*distributed.Limiter, error){
		"bucket": func(s *distributed.Store, burst int64, r algo.Rate) (*distributed.Limiter, error) {
			return s.TokenBucket("l", r, algo.Burst(burst))
		},
		"fixed": func(s *distributed.Store, burst int64, r algo.Rate) (*distributed.Limiter, error) {
			return s.FixedWindow("l", r)
		},
		"sliding": func(s *distributed.Store, burst int64, r algo.Rate) (*distributed.Limiter, error) {
			return s.SlidingWindow("l", r)
		},
		"log": func(s *distributed.Store, burst int64, r algo.Rate) (*distributed.Limiter, error) {
			return s.SlidingLog("l", r)
		},
	}
	rates := []algo.Rate{
		algo.Per(1, 24*time.Hour), algo.Per(10, 24*time.Hour), algo.PerHour(7), algo.PerMinute(5), algo.PerSecond(2),
		algo.PerSecond(50), algo.PerMinute(10_000), algo.PerSecond(1000), algo.PerSecond(1_000_000), algo.Per(100, 30*24*time.Hour),
	}
	distributed.FreshRequests(t)
	synctest.Test(t, func(t *testing.T) {
		cells := 0
		for _, n := range []int{1, 2, 3, 6, 50} {
			s := oneOf(t, n)
			for name, newLimit := range kinds {
				for _, r := range rates {
					for _, burst := range []int64{1, 3, 7, 100, 10_000, 1_000_000} {
						if name != "bucket" && burst > 1 {
							continue
						}
						l, err := newLimit(s, burst, r)
						if err != nil {
							continue // not a limit at all
						}
						if name != "bucket" {
							burst = r.Count
						}
						for _, cost := range []int64{1, 2, burst/int64(n) + 1, burst} {
							if s := (share{l, int64(n), burst, cost, r}); cost <= burst && s.pays(cost) < 90*24*time.Hour {
								cells++
								s.check(t, fmt.Sprintf("%s %v burst %d on %d, cost %d", name, r, burst, n, cost))
							}
						}
						require.NoError(t, l.Close())
					}
				}
			}
		}
		require.Greater(t, cells, 500)
	})
}

// share is a cell: a limit whose Redis is away, and the cost of the requests to it.
type share struct {
	limit          *distributed.Limiter
	n, burst, cost int64
	rate           algo.Rate
}

// pays is the time in which the rate of one instance pays for units.
func (s share) pays(units int64) time.Duration {
	return time.Duration(float64(units) * float64(s.n) * float64(s.rate.Period) / float64(s.rate.Count))
}

func (s share) check(t *testing.T, cell string) {
	const attempts = 20
	time.Sleep(time.Nanosecond)
	began, total := time.Now(), 0.0
	key := fmt.Sprint(cell, began)
	for i := range attempts {
		asked := time.Now()
		lease := acquire(t, s.limit, key, s.cost)
		if !lease.Allowed {
			require.Positive(t, lease.RetryAfter, cell)
			time.Sleep(lease.RetryAfter)
			lease = acquire(t, s.limit, key, s.cost)
			require.True(t, lease.Allowed, "%s: RetryAfter was not kept: %+v", cell, lease.Decision)
		}
		if i == 0 || strings.HasPrefix(cell, "bucket") {
			// a limit of whole microseconds is up to a tenth slower than its rate
			require.LessOrEqual(t, float64(time.Since(asked)), 1.1*float64(s.pays(s.cost))+1e6, cell)
		}
		total += float64(s.cost * s.n)
		room := float64(max(s.burst, s.n)) + float64(s.rate.Count)*float64(time.Since(began))/float64(s.rate.Period)
		if !strings.HasPrefix(cell, "bucket") {
			room += float64(max(s.burst, s.n)) // windows admit twice at an edge
		}
		require.LessOrEqual(t, total, room+1e-6*room+1, cell)
		if time.Since(began) > time.Hour && i > 0 {
			return
		}
	}
}

// A lease on saved units is settled like any other.
func TestW3_SavedUnitsAreSettled(t *testing.T) {
	distributed.FreshRequests(t)
	synctest.Test(t, func(t *testing.T) {
		s := oneOf(t, 6)
		l := must[*distributed.Limiter](t)(s.TokenBucket("tokens", algo.PerMinute(10_000)))
		denied := acquire(t, l, "org", 4000)
		require.False(t, denied.Allowed)
		require.Equal(t, algo.Overload, denied.Reason)
		time.Sleep(denied.RetryAfter)
		lease := acquire(t, l, "org", 4000)
		require.True(t, lease.Allowed)
		require.Zero(t, acquire(t, l, "org", 0).Remaining)
		lease.Settle(5000) // 1000 more than were paid: 6 s of the whole rate, 36 of this instance's
		require.InDelta(t, 36, acquire(t, l, "org", 1).RetryAfter.Seconds(), .1)
		require.Equal(t, algo.Never, acquire(t, l, "org", 10_001).Reason)
	})
}

// One request in flight is always admitted, whatever its cost.
func TestW3_OneRequestInFlightIsAdmitted(t *testing.T) {
	s := oneOf(t, 6)
	small := must[*distributed.Limiter](t)(s.InFlight("small", 2, 30*time.Second))
	first := acquire(t, small, "k", 1)
	require.True(t, first.Allowed)
	require.False(t, acquire(t, small, "k", 1).Allowed)
	first.Release(algo.Succeeded)
	require.True(t, acquire(t, small, "k", 1).Allowed)
	weighed := must[*distributed.Limiter](t)(s.InFlight("weighed", 10_000, 30*time.Second))
	lease := acquire(t, weighed, "k", 4000)
	require.True(t, lease.Allowed)
	require.False(t, acquire(t, weighed, "k", 1).Allowed)
	lease.Release(algo.Succeeded)
	require.True(t, acquire(t, weighed, "k", 1).Allowed)
}

// The children of a limit with floors have shares too.
func TestW3_EachFloorHasAShare(t *testing.T) {
	s := oneOf(t, 6)
	all := must[*distributed.Shares](t)(s.Shares("teams", algo.PerMinute(5), map[string]int64{"a": 2, "b": 2}))
	for _, child := range []string{"a", "b", "other"} {
		require.True(t, acquire(t, all.Child(child), child, 1).Allowed, child)
	}
}

// The log names the limits that are smaller than the number of instances.
func TestLimitsSmallerThanTheFleetAreNamed(t *testing.T) {
	var text bytes.Buffer
	distributed.FreshRequests(t)
	synctest.Test(t, func(t *testing.T) {
		s := oneOf(t, 6, distributed.WithLogger(slog.New(slog.NewTextHandler(&text, nil))))
		l := must[*distributed.Limiter](t)(s.TokenBucket("logins", algo.PerMinute(5)))
		must[*distributed.Limiter](t)(s.TokenBucket("api", algo.PerMinute(500)))
		require.Equal(t, 1, strings.Count(text.String(), "logins"), text.String())
		text.Reset()
		for range 10 {
			acquire(t, l, "k", 1)
		}
		time.Sleep(time.Minute)
		acquire(t, l, "k", 1)
		require.Equal(t, 1, strings.Count(text.String(), "logins"), text.String())
		require.NotContains(t, text.String(), "api")
	})
}
