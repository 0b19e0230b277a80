package algo_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/algo/prepaid"
)

// forwarding is a user's wrapper that only forwards.
type forwarding struct{ inner algo.Limiter }

func (f forwarding) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	return f.inner.Acquire(ctx, key, n)
}

func (f forwarding) Unwrap() []algo.Limiter { return []algo.Limiter{f.inner} }

type planKey struct{}

// byPlan chooses by the context, and panics without its value.
func byPlan(plans map[string]algo.Limiter) algo.Limiter {
	return algo.ByKey(func(ctx context.Context, _ string) algo.Limiter { return plans[ctx.Value(planKey{}).(string)] })
}

func ofPlan(plan string) context.Context { return context.WithValue(bg, planKey{}, plan) }

// The limit that was looked at is the one that a failure is charged to.
func TestFailuresAreChargedToTheLimitOfTheLook(t *testing.T) {
	free, standard := bucket(algo.PerHour(3)), bucket(algo.PerHour(1_000_000))
	l := guard.FailuresOnly(byPlan(map[string]algo.Limiter{"free": free, "": standard}))
	failed := 0
	for range 1000 {
		lease, err := l.Acquire(ofPlan("free"), "k", 1)
		require.NoError(t, err)
		if lease.Allowed {
			failed++
		}
		lease.Release(algo.Failed)
	}
	require.Equal(t, 3, failed)
	require.EqualValues(t, 1_000_000, peek(t, standard, "k").Remaining)
}

// Who waits as told commits no offence, nor does who looks.
func TestWaitingIsNoOffence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := algo.Must(guard.NewBan(bucket(algo.PerMinute(1)), algo.PerHour(2), time.Hour, time.Hour))
		for range 10 {
			lease, err := algo.Wait(t.Context(), b, "k", 1)
			require.NoError(t, err)
			lease.Release(algo.Succeeded)
		}
		require.Zero(t, b.Banned("k"))
		for range 10 { // peeks, behind a wrapper of which nothing is known
			acquireAll(t, algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota, RetryAfter: 1}), N: 1}, algo.Request{Limiter: forwarding{b}, Key: "k", N: 1})
		}
		require.Zero(t, b.Banned("k"))
		must(t, b, "k", 1)
		must(t, b, "k", 1)
		require.NotZero(t, b.Banned("k"), "requests that are sent although they are denied")
	})
}

// A plan that is chosen by what its own credits have left.
func TestAPlanMayReadItsCredits(t *testing.T) {
	credits := prepaid.NewCredits()
	rich, poor := bucket(algo.PerHour(100)), bucket(algo.PerHour(1))
	plan := algo.ByKey(func(_ context.Context, key string) algo.Limiter {
		if credits.Balance("owner of "+key) > 0 || credits.Balance(key) > 5 {
			return rich
		}
		return poor
	})
	require.NoError(t, credits.TopUp("k", 3))
	done := make(chan int64)
	go func() {
		admitted := int64(0)
		for range 10 {
			if lease, err := prepaid.First(plan, credits).Acquire(bg, "k", 1); err == nil && lease.Allowed {
				admitted++
			}
		}
		done <- admitted
	}()
	select {
	case n := <-done:
		require.EqualValues(t, 4, n)
	case <-time.After(10 * time.Second):
		t.Fatal("a deadlock")
	}
}

// First under contention admits what both have, and gives everything back.
func TestFirstInParallel(t *testing.T) {
	credits, plan := prepaid.NewCredits(), bucket(algo.PerDay(50))
	require.NoError(t, credits.TopUp("k", 70))
	l := prepaid.First(plan, credits)
	var mu sync.Mutex
	var leases []algo.Lease
	group(8, func(int) {
		for range 200 {
			lease, err := l.Acquire(bg, "k", 1)
			if err == nil && lease.Allowed {
				mu.Lock()
				leases = append(leases, lease)
				mu.Unlock()
			}
		}
	})
	require.LessOrEqual(t, len(leases), 120)
	require.GreaterOrEqual(t, len(leases), 119)
	for i := range leases {
		leases[i].Release(algo.Canceled)
	}
	require.EqualValues(t, 70, credits.Balance("k"))
	require.GreaterOrEqual(t, peek(t, plan, "k").Remaining, int64(49))
}

// Units that are settled above what credits paid come back when they are settled down.
func TestSettledDownBehindFirst(t *testing.T) {
	for name, last := range map[string]func(*algo.Lease){
		"settled down": func(l *algo.Lease) { l.Settle(2) },
		"canceled":     func(l *algo.Lease) { l.Settle(2); l.Release(algo.Canceled) },
	} {
		credits, plan := prepaid.NewCredits(), bucket(algo.PerDay(10))
		require.NoError(t, credits.TopUp("k", 2))
		plan.Allow("k", 10)
		lease := must(t, prepaid.First(plan, credits), "k", 2)
		require.True(t, lease.Allowed, name)
		lease.Settle(7)
		last(&lease)
		require.True(t, plan.Allow("k", 0))
		require.Less(t, peek(t, plan, "k").NextAfter, 3*time.Hour, "%s: the plan has debt", name)
	}
}

// A lease of cost 0 is settled up and down.
func TestALeaseOfCost0SettlesDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, l := range map[string]algo.Limiter{
			"bucket": bucket(algo.PerDay(10)), "window": algo.Must(algo.NewFixedWindow(algo.PerDay(10))),
			"sliding": algo.Must(algo.NewSlidingWindow(algo.PerDay(10))), "strict": algo.Must(newStrict(algo.PerDay(10), algo.Burst(10))),
		} {
			lease := must(t, l, "k", 0)
			lease.Settle(8)
			require.EqualValues(t, 2, peek(t, l, "k").Remaining, name)
			lease.Settle(3)
			require.EqualValues(t, 7, peek(t, l, "k").Remaining, name)
			lease.Release(algo.Canceled)
			require.EqualValues(t, 10, peek(t, l, "k").Remaining, name)
		}
	})
}

// Settle of limits in several units, one of them nested, changes nothing.
func TestSettleOfNestedMixedLimits(t *testing.T) {
	a, b := bucket(algo.PerDay(100)), bucket(algo.PerDay(100))
	slots := &countedSlots{}
	l := algo.All(a, forwarding{algo.All(b, slots)})
	lease := must(t, l, "k", 1)
	lease.Settle(50)
	require.EqualValues(t, 99, peek(t, a, "k").Remaining)
	require.EqualValues(t, 99, peek(t, b, "k").Remaining)
	require.Zero(t, slots.settled)
}

// countedSlots is a limiter of units in flight.
type countedSlots struct{ settled int64 }

func (c *countedSlots) Acquire(_ context.Context, key string, n int64) (algo.Lease, error) {
	return algo.NewLease(algo.Decision{Allowed: true, Limit: 9, Remaining: 8}, c, algo.Handle{Key: key, N: n}), nil
}
func (c *countedSlots) Release(algo.Handle, algo.Outcome) {}
func (c *countedSlots) Settle(algo.Handle, int64)         { c.settled++ }
func (c *countedSlots) About() algo.Description {
	return algo.Description{Quota: 9, Unit: algo.ConcurrentRequests, NeedsRelease: true}
}

// Waiters notice within a second that nothing denies them any more.
func TestWaitersNotice(t *testing.T) {
	in(t, map[string]func(*algo.RateLimiter, *algo.Switch){
		"off":          func(_ *algo.RateLimiter, s *algo.Switch) { s.Off() },
		"reset":        func(b *algo.RateLimiter, _ *algo.Switch) { b.Reset("k") },
		"a larger one": func(b *algo.RateLimiter, _ *algo.Switch) { _ = b.SetRate(algo.PerSecond(1000)) },
	}, func(t *testing.T, change func(*algo.RateLimiter, *algo.Switch)) {
		synctest.Test(t, func(t *testing.T) {
			b := bucket(algo.PerHour(1))
			s := algo.NewSwitch(b)
			require.True(t, b.Allow("k", 1))
			time.AfterFunc(time.Minute, func() { change(b, s) })
			from := time.Now()
			lease, err := algo.Wait(t.Context(), s, "k", 1)
			require.NoError(t, err)
			lease.Release(algo.Succeeded)
			require.LessOrEqual(t, time.Since(from), 62*time.Second)
		})
	})
}

// After a denial each limit is shown as before a charge that was given back, behind any wrapper.
func TestDenialsShowNoChargeThatWasGivenBack(t *testing.T) {
	for name, wrapped := range map[string]func(algo.Limiter) algo.Limiter{
		"itself": func(l algo.Limiter) algo.Limiter { return l }, "wrapped": func(l algo.Limiter) algo.Limiter { return forwarding{l} },
		"foreign": func(l algo.Limiter) algo.Limiter { return limiterFunc(l.Acquire) },
	} {
		roomy, full := bucket(algo.PerHour(1000)), bucket(algo.PerHour(1))
		full.Allow("k", 1)
		lease := acquireAll(t, algo.Request{Limiter: wrapped(roomy), Key: "k", N: 50}, algo.Request{Limiter: full, Key: "k", N: 1})
		require.False(t, lease.Allowed)
		require.EqualValues(t, 1000, lease.Parts()[0].Remaining, name)
		require.Zero(t, lease.Parts()[0].ResetAfter, name)
	}
}

// The numbers of limits on trial, or off, do not describe a composition.
func TestTrialsDoNotDescribe(t *testing.T) {
	off := algo.NewSwitch(bucket(algo.PerHour(1)))
	off.Off()
	for name, trial := range map[string]algo.Limiter{"on trial": algo.Shadow(bucket(algo.PerHour(1))), "off": off} {
		d := algo.About(algo.All(trial, bucket(algo.PerHour(9)), trial))
		require.Equal(t, algo.Description{Rate: algo.PerHour(9), Quota: 9, Window: time.Hour}, d, name)
		d = algo.About(algo.All(trial, trial))
		require.True(t, d.Off)
		require.EqualValues(t, 1, d.Quota)
	}
}

func ExamplePeek() {
	plan := algo.ByKey(func(_ context.Context, key string) algo.Limiter { return bucket(algo.PerHour(3)) })
	d, _ := algo.Peek(context.Background(), guard.FailuresOnly(plan), "alice", 5)
	fmt.Println(d.Allowed, d.Reason, d.Remaining)
	// Output: false never 3
}

// What can be reset in a composition.
func ExampleWalk() {
	free, paid := bucket(algo.PerHour(3)), bucket(algo.PerHour(300))
	plans := algo.ByKey(func(context.Context, string) algo.Limiter { return free }, free, paid)
	for l := range algo.Walk(algo.All(algo.Shadow(plans), free)) {
		if r, ok := l.(interface{ Reset(key string) }); ok {
			r.Reset("alice")
			fmt.Printf("%T\n", l)
		}
	}
	// Output:
	// *algo.RateLimiter
	// *algo.RateLimiter
}

func ExampleResolve() {
	s := algo.NewSwitch(bucket(algo.PerHour(3)))
	s.Off()
	l, _ := algo.Resolve(context.Background(), s, "alice")
	fmt.Println(l == algo.Unlimited())
	// Output: true
}

// A wrapper that counts denials leaves out those of callers that wait as they are told.
func ExampleTentative() {
	fmt.Println(algo.IsTentative(context.Background()), algo.IsTentative(algo.Tentative(context.Background())))
	// Output: false true
}
