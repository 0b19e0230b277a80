package algo_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// captureLog returns the log lines of fn.
func captureLog(t *testing.T, fn func()) string {
	t.Helper()
	var out bytes.Buffer
	defer log.SetOutput(log.Writer())
	log.SetOutput(&out)
	fn()
	return out.String()
}

// perUser returns the usual limits of an API of a language model: requests,
// tokens, and requests in flight.
func perUser(t *testing.T) (requests, tokens *algo.RateLimiter, inFlight *adaptive.KeyedLimiter) {
	t.Helper()
	return bucket(algo.PerMinute(10)), bucket(algo.PerMinute(3000)), algo.Must(adaptive.PerKey(3))
}

func TestPartSettlesOneLimit(t *testing.T) {
	requests, tokens, inFlight := perUser(t)
	lease := acquireAll(t, algo.Request{Limiter: requests, Key: "u", N: 1},
		algo.Request{Limiter: tokens, Key: "u", N: 500}, algo.Request{Limiter: inFlight, Key: "u", N: 1})
	require.Equal(t, int64(2500), lease.Part(1).Remaining)
	lease.Part(1).Settle(1500)
	require.Equal(t, int64(9), peek(t, requests, "u").Remaining)
	require.Equal(t, int64(1500), peek(t, tokens, "u").Remaining)
	require.Equal(t, 1, inFlight.InFlight("u"))
	lease.Part(1).Settle(1000)
	require.Equal(t, int64(2000), peek(t, tokens, "u").Remaining, "settled again, downwards")

	lease.Part(2).Release(algo.Succeeded)
	require.Equal(t, 1, inFlight.InFlight("u"), "released with the lease only")
	part := lease.Part(1)
	lease.Release(algo.Succeeded)
	require.Zero(t, inFlight.InFlight("u"))
	part.Settle(1)
	lease.Part(1).Settle(1)
	require.Equal(t, int64(2000), peek(t, tokens, "u").Remaining, "after Release")
}

// A user who is over a limit is not locked out of the others, and the mistake is
// logged once.
func TestSettleOfMixedLimits(t *testing.T) {
	for name, costs := range map[string][3]int64{"different costs": {1, 500, 1}, "slots": {1, 1, 1}} {
		synctest.Test(t, func(t *testing.T) {
			requests, tokens, inFlight := perUser(t)
			algo.ResetWarnings()
			says := captureLog(t, func() {
				lease := acquireAll(t, algo.Request{Limiter: requests, Key: "u", N: costs[0]},
					algo.Request{Limiter: tokens, Key: "u", N: costs[1]}, algo.Request{Limiter: inFlight, Key: "u", N: costs[2]})
				lease.Settle(1500)
				lease.Settle(1600)
				lease.Release(algo.Succeeded)
			})
			require.Contains(t, says, "code=algo.settle_mixed", name)
			require.Equal(t, 1, bytes.Count([]byte(says), []byte("\n")), name)
			require.True(t, must(t, algo.All(requests, inFlight), "u", 1).Allowed, name)
			require.Equal(t, 3000-costs[1], peek(t, tokens, "u").Remaining, name)
		})
	}
}

// A part that is itself several limits is settled as a whole, unless they differ
// in unit.
func TestPartOfACompositePart(t *testing.T) {
	second, day, other := bucket(algo.PerMinute(10)), bucket(algo.PerHour(100)), bucket(algo.PerHour(5))
	inFlight := algo.Must(adaptive.PerKey(50))
	lease := acquireAll(t, algo.Request{Limiter: other, Key: "u", N: 1},
		algo.Request{Limiter: algo.All(second, day), Key: "u", N: 2},
		algo.Request{Limiter: algo.All(second, inFlight), Key: "u", N: 1})
	require.False(t, lease.Part(3).Allowed)
	require.False(t, lease.Part(-1).Allowed)
	lease.Part(1).Settle(4)
	require.Equal(t, int64(96), peek(t, day, "u").Remaining)
	require.Equal(t, int64(5), peek(t, second, "u").Remaining)
	algo.ResetWarnings()
	require.Contains(t, captureLog(t, func() { lease.Part(2).Settle(9) }), "algo.settle_mixed")
	require.Equal(t, 1, inFlight.InFlight("u"))
	lease.Release(algo.Canceled)
	require.Equal(t, int64(10), peek(t, second, "u").Remaining)

	single := must(t, day, "v", 1)
	single.Part(0).Settle(3)
	single.Part(1).Settle(50)
	require.Equal(t, int64(97), peek(t, day, "v").Remaining)
}

// Of settlements of a lease and of its parts the last counts.
func TestLastSettlementOfWholeOrPart(t *testing.T) {
	a, b := bucket(algo.PerHour(100)), bucket(algo.PerHour(100))
	lease := must(t, algo.All(a, b), "u", 1)
	part := lease.Part(0)
	for range 2 {
		lease.Settle(5)
		require.Equal(t, int64(95), peek(t, a, "u").Remaining)
		part.Settle(3)
		require.Equal(t, int64(97), peek(t, a, "u").Remaining)
		require.Equal(t, int64(95), peek(t, b, "u").Remaining)
	}
}

// A cost that is not known before the work is charged after it, by every
// algorithm.
func TestSettleOfNoCost(t *testing.T) {
	for _, spec := range append(cases.Limits("5/min", nil), "pacer 5/min", "smooth-bursty 5/min", "strict 5/min") {
		synctest.Test(t, func(t *testing.T) {
			l := made(spec)
			for _, key := range []string{"", "k"} {
				time.Sleep(time.Hour)
				fresh := peek(t, l, key)
				unused := must(t, l, key, 0)
				unused.Release(algo.Canceled)
				require.Equal(t, fresh, peek(t, l, key), spec)
				lease := must(t, l, key, 0)
				time.Sleep(time.Second)
				lease.Settle(3)
				require.Greater(t, peek(t, l, key).ResetAfter, time.Duration(0), spec)
				after := peek(t, l, key)
				lease.Settle(2)
				less := peek(t, l, key)
				lease.Settle(3)
				require.GreaterOrEqual(t, peek(t, l, key).ResetAfter, less.ResetAfter, spec)
				lease.Release(algo.Canceled)
				if strings.Contains(spec, "warmup") {
					continue // the price of its permits depends on their time: they stay charged
				}
				require.LessOrEqual(t, peek(t, l, key).ResetAfter, after.ResetAfter, "%s: at most the charge is kept", spec)
			}
		})
	}
	for name, l := range map[string]interface {
		algo.Limiter
		InFlight() int
	}{"in flight": algo.Must(adaptive.New(adaptive.Fixed(5)))} {
		lease, err := l.Acquire(context.Background(), "", 0)
		require.NoError(t, err)
		lease.Settle(3)
		require.Equal(t, 3, l.InFlight(), name)
		lease.Release(algo.Succeeded)
		require.Zero(t, l.InFlight(), name)
	}
	perKey := algo.Must(adaptive.PerKey(5))
	lease := must(t, perKey, "u", 0)
	lease.Settle(3)
	require.Equal(t, 3, perKey.InFlight("u"))
	lease.Release(algo.Succeeded)
	require.Zero(t, perKey.Len())
}

// An API of a language model: a request counts once, its tokens are known when
// it has been answered, and a slot is held meanwhile.
func ExampleLease_Part() {
	requests := algo.Must(algo.NewTokenBucket(algo.PerMinute(60)))
	tokens := algo.Must(algo.NewTokenBucket(algo.PerMinute(10_000)))
	inFlight := algo.Must(adaptive.PerKey(3))

	lease, err := algo.AcquireAll(context.Background(),
		algo.Request{Limiter: requests, Key: "alice", N: 1},
		algo.Request{Limiter: tokens, Key: "alice", N: 500}, // an estimate
		algo.Request{Limiter: inFlight, Key: "alice", N: 1})
	if err != nil || !lease.Allowed {
		return
	}
	lease.Part(1).Settle(1500) // the cost of the answer
	lease.Release(algo.Succeeded)

	after := algo.Must(tokens.Acquire(context.Background(), "alice", 0))
	fmt.Println(after.Remaining, "tokens left")
	// Output: 8500 tokens left
}

// A literal explains itself.
func TestLiteral(t *testing.T) {
	l := new(algo.RateLimiter)
	const says = "algo: the limiter is a literal without a limit: make it with its constructor, such as NewTokenBucket"
	_, err := l.Acquire(context.Background(), "k", 1)
	require.EqualError(t, err, says)
	require.PanicsWithError(t, says, func() { l.Allow("k", 1) })
	require.EqualError(t, l.SetRate(algo.PerSecond(1)), says)
	require.EqualError(t, l.SetBurst(1), says)
	require.EqualError(t, algo.Spec{Rate: algo.PerSecond(1)}.Apply(l), says)
	require.Zero(t, algo.About(l).Quota)
	require.Zero(t, l.Stats())
}

// TestOthersSettleKeepsRefunds: a Settle far above the limit, a Reset and a change of
// the limit end the refunds of their own key only.
func TestOthersSettleKeepsRefunds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, name := range cases.Limits("10/h", atOnce) {
			l := made(name)
			const others = 1000
			var leases []algo.Lease
			for i := range others {
				leases = append(leases, must(t, l, fmt.Sprint("honest", i), 5))
			}
			abuser := must(t, l, "abuser", 1)
			abuser.Settle(1 << 40)
			for range 100 {
				l.Reset("abuser")
				lease := must(t, l, "abuser", 1)
				lease.Settle(1 << 40)
			}
			for i := range leases {
				leases[i].Release(algo.Canceled)
				require.EqualValues(t, 10, must(t, l, fmt.Sprint("honest", i), 0).Remaining, "%s: key %d", name, i)
			}
			abuser.Release(algo.Canceled)
			require.Zero(t, must(t, l, "abuser", 0).Remaining, "%s: nothing of its own", name)
		}
	})
}
