package distributed_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// plans are the plans that First takes, of 10 units at once that hardly come back.
func plans(t *testing.T, s *distributed.Store) map[string]*distributed.Limiter {
	return map[string]*distributed.Limiter{
		"bucket":   must[*distributed.Limiter](t)(s.TokenBucket("b", algo.Per(10, 24*time.Hour))),
		"window":   must[*distributed.Limiter](t)(s.FixedWindow("w", algo.Per(10, 100*24*time.Hour))),
		"log":      must[*distributed.Limiter](t)(s.SlidingLog("l", algo.Per(10, 24*time.Hour))),
		"calendar": must[*distributed.Limiter](t)(s.FixedWindow("c", algo.Per(10, algo.Quarter), algo.Zone("UTC"))),
	}
}

func TestFirstSplitsAndGivesBack(t *testing.T) {
	s, server := onRedis(t, distributed.WithInstances(1)) // no heartbeats
	require.NoError(t, s.Ping(ctx))
	for name, plan := range plans(t, s) {
		t.Run(name, func(t *testing.T) {
			credits := must[*distributed.Credits](t)(s.Credits("credits of " + name))
			l := prepaid.First(plan, credits)
			balance := func() int64 { return must[int64](t)(credits.Balance(ctx, "a")) }
			left := func() int64 { return remote(t, plan, "a", 0).Remaining }
			require.False(t, remote(t, l, "a", 11).Allowed)
			require.Equal(t, algo.Never, remote(t, l, "a", 11).Reason)
			require.NoError(t, credits.TopUp(ctx, "a", "1", 20))
			require.Equal(t, int64(30), remote(t, l, "a", 0).Remaining)

			calls := evalCalls(server)
			half := remote(t, l, "a", 5)
			require.Equal(t, calls+1, evalCalls(server), "one round trip while the plan pays")
			half.Release(algo.Canceled)
			require.Eventually(t, func() bool { return left() == 10 }, patient, time.Millisecond)
			calls = evalCalls(server)
			lease := remote(t, l, "a", 25)
			require.Equal(t, calls+3, evalCalls(server), "both pay")
			require.True(t, lease.Allowed)
			require.Equal(t, int64(5), lease.Remaining)
			require.Zero(t, left(), "the plan first")
			require.Equal(t, int64(5), balance())

			lease.Settle(12)
			require.Eventually(t, func() bool { return balance() == 18 }, patient, time.Millisecond)
			require.Zero(t, left())
			lease.Settle(4)
			require.Eventually(t, func() bool { return balance() == 20 && left() == 6 }, patient, time.Millisecond)
			denied := remote(t, l, "a", 27)
			require.False(t, denied.Allowed)
			require.Equal(t, int64(26), denied.Remaining)
			require.Equal(t, algo.Quota, denied.Reason)
			require.Positive(t, denied.RetryAfter)
			require.Equal(t, int64(20), balance(), "nothing is charged")
			lease.Release(algo.Canceled)
			lease.Release(algo.Canceled)
			require.Eventually(t, func() bool { return balance() == 20 && left() == 10 }, patient, time.Millisecond)

			require.True(t, remote(t, l, "a", 10).Allowed)
			calls = evalCalls(server)
			only := remote(t, l, "a", 5) // of credits
			require.LessOrEqual(t, evalCalls(server), calls+2, "the plan denies, credits pay")
			only.Settle(9)
			require.Eventually(t, func() bool { return balance() == 11 }, patient, time.Millisecond, "credits pay 4 more")
			owes := func() time.Duration { return remote(t, plan, "a", 0).ResetAfter.Round(time.Minute) }
			owed := owes()
			only.Settle(24)
			require.Eventually(t, func() bool { return balance() == -4 }, patient, time.Millisecond, "below zero too")
			only.Settle(21)
			only.Settle(24)
			require.Eventually(t, func() bool { return balance() == -4 }, patient, time.Millisecond, "once")
			require.Equal(t, owed, owes(), "the plan owes nothing")
			about := algo.About(l)
			require.Equal(t, int64(10), about.Quota)
		})
	}
}

// What is settled above the request is charged: to what the plan has left, and then to credits,
// below zero.
func TestFirstServesWhatWasPaid(t *testing.T) {
	s, _ := onRedis(t, distributed.WithInstances(1))
	for name, plan := range plans(t, s) {
		for n := range int64(2) {
			credits := must[*distributed.Credits](t)(s.Credits(fmt.Sprint("paid ", name, n)))
			l := prepaid.First(plan, credits)
			key, served := fmt.Sprint("k", n), int64(0)
			require.NoError(t, credits.TopUp(ctx, key, "1", 1000))
			for range 100 {
				if !remote(t, l, key, 1).Allowed {
					break
				}
				lease := remote(t, l, key, 9*n)
				if !lease.Allowed {
					break
				}
				lease.Settle(1000)
				lease.Release(algo.Succeeded)
				served += 1001
			}
			require.LessOrEqual(t, served, 1000-min(must[int64](t)(credits.Balance(ctx, key)), 0)+2*10, name)
		}
	}
}

func TestCreditsTopUp(t *testing.T) {
	server := redistest.Start(t)
	s := newStore(t, server.Client())
	c := must[*distributed.Credits](t)(s.Credits("credits"))
	for range 3 {
		require.NoError(t, c.TopUp(ctx, "a", "invoice 1", 5), "repeated with one id it counts once")
	}
	err := c.TopUp(ctx, "a", "invoice 1", 500)
	require.ErrorIs(t, err, distributed.ErrTopUpExists, "another payment with a used id")
	require.ErrorContains(t, err, "of 5 units, not 500")
	require.NoError(t, c.TopUp(ctx, "a", "invoice 2", 5))
	require.NoError(t, c.TopUp(ctx, "b", "invoice 1", 1), "ids are of a key")
	require.Equal(t, int64(10), must[int64](t)(c.Balance(ctx, "a")))
	require.ErrorIs(t, c.TopUp(ctx, "a", "3", -1), algo.ErrCost)
	require.ErrorIs(t, c.TopUp(ctx, "a", "3", 1<<53-1), algo.ErrCost)
	require.NoError(t, c.TopUp(ctx, "a", "3", 1<<53-11), "a rejected top-up has no receipt")
	require.Equal(t, int64(1<<53-1), must[int64](t)(c.Balance(ctx, "a")))
	require.ErrorContains(t, c.TopUp(ctx, "a", "", 1), "id")
	_, err = s.Credits("")
	require.ErrorContains(t, err, "want 1 to")
	server.Do("SET", distributed.RedisKey("sluice", "credits", "c"), "1000")
	_, err = c.Balance(ctx, "c")
	require.ErrorContains(t, err, "another algorithm")
	require.Error(t, c.TopUp(ctx, "c", "1", 1))
	require.NoError(t, s.Close())
	require.ErrorIs(t, c.TopUp(ctx, "a", "4", 1), distributed.ErrClosed)
}

func TestFirstErrors(t *testing.T) {
	server := redistest.Start(t)
	s := newStore(t, server.Client())
	credits := must[*distributed.Credits](t)(s.Credits("credits"))
	plan := must[*distributed.Limiter](t)(s.TokenBucket("plan", algo.PerHour(2)))
	l := prepaid.First(plan, credits)
	_, err := l.Acquire(ctx, "a", -1)
	require.ErrorIs(t, err, algo.ErrCost)
	require.NoError(t, credits.TopUp(ctx, "a", "1", 3))
	require.NoError(t, plan.Ban(ctx, "a", time.Hour))
	require.Equal(t, algo.Banned, remote(t, l, "a", 1).Reason)
	require.Equal(t, int64(3), must[int64](t)(credits.Balance(ctx, "a")), "a banned key spends no credits")
	server.Do("SET", distributed.RedisKey("sluice", "credits", "b"), "1000")
	require.True(t, remote(t, l, "b", 2).Allowed)
	require.Equal(t, algo.Quota, remote(t, l, "b", 1).Reason, "a balance that is none leaves the plan alone")
}

// TestW2_FirstOnRedis: instances that race for a plan and its credits spend exactly the
// units of both.
func TestW2_FirstOnRedis(t *testing.T) {
	server := redistest.Start(t)
	var admitted atomic.Int64
	var group sync.WaitGroup
	for i := range 4 {
		s := newStore(t, server.Client())
		plan := must[*distributed.Limiter](t)(s.TokenBucket("plan", algo.Per(100, 1000*time.Hour)))
		credits := must[*distributed.Credits](t)(s.Credits("credits"))
		l := prepaid.First(plan, credits)
		if i == 0 {
			require.NoError(t, credits.TopUp(ctx, "a", "1", 150))
		}
		for range 4 {
			group.Go(func() {
				for i, n := 0, int64(3); n > 0; i++ {
					lease := remote(t, l, "a", n)
					switch {
					case !lease.Allowed:
						n--
					case i%4 == 0:
						lease.Release(algo.Canceled)
					default:
						admitted.Add(n)
					}
				}
			})
		}
	}
	group.Wait()
	require.LessOrEqual(t, admitted.Load(), int64(250))
	require.GreaterOrEqual(t, admitted.Load(), int64(200))
}

// TestW3_FirstWithoutRedis: during an outage the plan's share decides, and no credits are
// spent.
func TestW3_FirstWithoutRedis(t *testing.T) {
	server, e := redistest.Start(t), new(events)
	s := newStore(t, server.Client(), quick(e)...)
	plan := must[*distributed.Limiter](t)(s.TokenBucket("plan", algo.Per(10, 1000*time.Hour)))
	credits := must[*distributed.Credits](t)(s.Credits("credits"))
	l := prepaid.First(plan, credits)
	require.NoError(t, credits.TopUp(ctx, "a", "1", 20))
	require.True(t, remote(t, l, "a", 4).Allowed)
	server.Kill()
	admitted := 0
	for range 30 {
		lease := acquire(t, l, "a", 1)
		require.Equal(t, algo.SourceFallback, lease.Source)
		if lease.Allowed {
			admitted++
		}
	}
	require.Equal(t, 6, admitted, "the remaining units of the plan")
	require.ErrorIs(t, credits.TopUp(ctx, "a", "2", 1), distributed.ErrUnavailable)
}

// A reply that comes after its caller has gone on is undone in both.
func TestFirstUndoesLateReplies(t *testing.T) {
	server := redistest.Start(t)
	s := newStore(t, server.Client())
	plan := must[*distributed.Limiter](t)(s.TokenBucket("plan", algo.Per(10, 1000*time.Hour)))
	credits := must[*distributed.Credits](t)(s.Credits("credits"))
	l := prepaid.First(plan, credits)
	require.NoError(t, credits.TopUp(ctx, "a", "1", 20))
	require.Equal(t, int64(30), remote(t, l, "a", 0).Remaining)
	server.Pause()
	hurried, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err := l.Acquire(hurried, "a", 15)
	require.NoError(t, err)
	server.Resume()
	require.Eventually(t, func() bool {
		return must[int64](t)(credits.Balance(ctx, "a")) == 20 && remote(t, plan, "a", 0).Remaining == 10
	}, patient, 10*time.Millisecond)
}
