package guard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// Ten correct logins at once are ten logins; five wrong ones are the last.
func TestFailuresOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := bucket(algo.PerMinute(5))
		l := guard.FailuresOnly(inner)
		var leases [10]algo.Lease
		for i := range leases {
			leases[i] = must(t, l, "alice", 1)
			require.True(t, leases[i].Allowed)
			require.Equal(t, int64(5), leases[i].Remaining)
		}
		for i := range leases {
			leases[i].Release(algo.Succeeded)
		}
		outcomes := []algo.Outcome{algo.Failed, algo.Canceled, algo.Failed | algo.Untimed, algo.Succeeded, algo.Failed, algo.Failed, algo.Failed}
		for _, o := range outcomes {
			lease := must(t, l, "alice", 1)
			require.True(t, lease.Allowed, o)
			lease.Release(o)
			lease.Release(algo.Failed)
		}
		denied := must(t, l, "alice", 1)
		require.False(t, denied.Allowed)
		require.Equal(t, algo.Quota, denied.Reason)
		require.Equal(t, peek(t, inner, "alice").NextAfter, denied.RetryAfter)
		require.True(t, must(t, l, "bob", 1).Allowed)
		time.Sleep(denied.RetryAfter - 1)
		require.False(t, must(t, l, "alice", 1).Allowed)
		time.Sleep(time.Nanosecond)
		require.True(t, must(t, l, "alice", 1).Allowed)
		require.Equal(t, algo.Never, must(t, l, "alice", 6).Reason)
		require.True(t, must(t, l, "alice", 0).Allowed)
		_, err := l.Acquire(bg, "alice", -1)
		require.ErrorIs(t, err, algo.ErrCost)
	})
}

// A cost that is known only after the work is charged if it has failed.
func TestFailuresOnlySettlesNoCost(t *testing.T) {
	inner := bucket(algo.PerHour(100))
	for _, o := range []algo.Outcome{algo.Succeeded, algo.Failed} {
		lease := must(t, guard.FailuresOnly(inner), "k", 0)
		lease.Settle(5)
		lease.Release(o)
	}
	require.Equal(t, int64(95), peek(t, inner, "k").Remaining)
}

// The bound, with c requests in flight at once and whatever they answer.
func TestW2_FailuresOnly(t *testing.T) {
	const burst, inFlight, cost = 5, 4, 1
	for seed := range uint64(cases.Count(200, 5000)) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			l := guard.FailuresOnly(bucket(algo.Rate{Count: burst, Period: time.Minute}))
			var failures []time.Time
			var open []algo.Lease
			for range 200 {
				if rnd.IntN(3) == 0 {
					time.Sleep(time.Duration(rnd.Int64N(int64(20 * time.Second))))
				}
				if len(open) < inFlight && rnd.IntN(2) == 0 {
					if lease := must(t, l, "k", cost); lease.Allowed {
						open = append(open, lease)
					}
				} else if len(open) > 0 {
					if rnd.IntN(4) > 0 {
						failures = append(failures, time.Now())
						open[0].Release(algo.Failed)
					} else {
						open[0].Release(algo.Succeeded)
					}
					open = open[1:]
				}
			}
			require.NotEmpty(t, failures)
			for i, from := range failures {
				for j := i; j < len(failures); j++ {
					w := failures[j].Sub(from)
					most := burst*int64(time.Minute) + burst*int64(w) + (inFlight-cost)*int64(time.Minute)
					require.LessOrEqual(t, int64(j-i+1)*int64(time.Minute), most, "%d failures in %v", j-i+1, w)
				}
			}
		})
	}
}

// Over compositions, bans and shadows, and beside another limit that denies.
func TestFailuresOnlyComposes(t *testing.T) {
	minute, day := bucket(algo.PerMinute(3)), bucket(algo.PerDay(5))
	l := guard.FailuresOnly(algo.All(minute, day))
	lease := must(t, l, "k", 2)
	lease.Release(algo.Failed)
	require.Equal(t, int64(1), peek(t, minute, "k").Remaining)
	require.Equal(t, int64(3), peek(t, day, "k").Remaining)
	require.False(t, must(t, l, "k", 2).Allowed)

	both := acquireAll(t, algo.Request{Limiter: l, Key: "k", N: 1},
		algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota, RetryAfter: time.Second}), Key: "k", N: 1})
	require.False(t, both.Allowed)
	require.True(t, both.Parts()[0].Allowed)
	both.Release(algo.Failed)
	require.Equal(t, int64(1), peek(t, minute, "k").Remaining)
	behind := acquireAll(t, algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota, RetryAfter: time.Second}), Key: "k", N: 1},
		algo.Request{Limiter: l, Key: "k", N: 2})
	require.False(t, behind.Parts()[1].Allowed, "peeked")

	banning := algo.Must(guard.NewBan(guard.FailuresOnly(bucket(algo.PerMinute(1))), algo.PerMinute(2), time.Hour, time.Hour))
	for range 50 {
		lease := must(t, banning, "alice", 1)
		require.True(t, lease.Allowed)
		lease.Release(algo.Succeeded)
	}
	lease = must(t, banning, "eve", 1)
	lease.Release(algo.Failed)
	for range 2 {
		require.False(t, must(t, banning, "eve", 1).Allowed)
	}
	require.Greater(t, banning.Banned("eve"), time.Duration(0))
	require.Zero(t, banning.Banned("alice"))

	about := algo.About(guard.FailuresOnly(minute))
	require.Equal(t, int64(3), about.Quota)
	require.NoError(t, algo.Spec{Rate: algo.PerMinute(9)}.Apply(guard.FailuresOnly(minute)))
	require.True(t, algo.About(l).NeedsRelease)
	require.PanicsWithValue(t, "guard: FailuresOnly: the limiter is nil", func() { guard.FailuresOnly(nil) })
}

// Five wrong passwords a minute for each user, and four tries at once.
func ExampleFailuresOnly() {
	wrong := guard.FailuresOnly(algo.Must(algo.NewTokenBucket(algo.PerMinute(5))))
	tries := algo.Must(adaptive.PerKey(4))
	login := func(user, password string) string {
		lease, err := algo.AcquireAll(context.Background(),
			algo.Request{Limiter: tries, Key: user, N: 1}, algo.Request{Limiter: wrong, Key: user, N: 1})
		if err != nil || !lease.Allowed {
			return "try later"
		}
		if password != "secret" {
			lease.Release(algo.Failed)
			return "wrong"
		}
		lease.Release(algo.Succeeded)
		return "welcome"
	}
	for range 20 {
		login("alice", "secret")
	}
	for range 6 {
		fmt.Println(login("alice", "guess"))
	}
	// Output:
	// wrong
	// wrong
	// wrong
	// wrong
	// wrong
	// try later
}

// A circuit breaker around a call, beside a rate limit: three failures open it, and it lets one call
// through each ten seconds for as long as they fail.
func ExampleFailuresOnly_breaker() {
	breaker := guard.FailuresOnly(algo.Must(algo.NewTokenBucket(algo.Every(10*time.Second), algo.Burst(3))))
	partner := algo.All(algo.Must(algo.NewTokenBucket(algo.PerSecond(100))), breaker)
	call := func(do func() error) error {
		lease, err := partner.Acquire(context.Background(), "", 1)
		if err != nil {
			return err
		}
		if !lease.Allowed {
			return errors.New("not called")
		}
		outcome := algo.Failed // also of a panic
		defer func() { lease.Release(outcome) }()
		if err = do(); err == nil {
			outcome = algo.Succeeded
		}
		return err
	}
	for range 5 {
		fmt.Println(call(func() error { return errors.New("connection refused") }))
	}
	// Output:
	// connection refused
	// connection refused
	// connection refused
	// not called
	// not called
}
