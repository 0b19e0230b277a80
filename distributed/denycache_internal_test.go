package distributed

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// A refund by another instance takes effect when the proof of a denial expires,
// after a second.
func TestProofsLastASecond(t *testing.T) {
	freshRequests(t)
	synctest.Test(t, func(t *testing.T) {
		server := newVirtualServer(perMicros(1, time.Hour), 1)
		here := virtualLimiter(t, server, 0, WithInstances(2))
		there := virtualLimiter(t, server, 1, WithInstances(2))
		ask := func(l *Limiter) algo.Lease {
			lease, err := l.Acquire(t.Context(), "k", 1)
			require.NoError(t, err)
			return lease
		}
		spent := ask(there)
		require.True(t, spent.Allowed)
		require.Equal(t, algo.SourceRemote, ask(here).Source)
		spent.Release(algo.Canceled)
		denied := ask(here)
		require.Equal(t, algo.SourceDenyCache, denied.Source)
		time.Sleep(proofLifetime)
		require.True(t, ask(here).Allowed)
	})
}

// A denial that Redis decided before a refund proves nothing after it, although its reply comes
// later.
func TestDenialOnItsWayDuringARefund(t *testing.T) {
	freshRequests(t)
	synctest.Test(t, func(t *testing.T) {
		l := virtualLimiter(t, newVirtualServer(perMicros(1, time.Hour), 1), 0, WithInstances(1))
		ask := func() algo.Lease {
			lease, err := l.Acquire(t.Context(), "k", 1)
			require.NoError(t, err)
			return lease
		}
		spent := ask()
		require.True(t, spent.Allowed)
		denied := make(chan bool)
		go func() { denied <- !ask().Allowed }()
		time.Sleep(simulatedTrip / 2)
		spent.Release(algo.Canceled)
		require.True(t, <-denied)
		time.Sleep(2 * simulatedTrip)
		require.True(t, ask().Allowed)
	})
}

// A ban that Redis told before it was lifted here is not kept, although its reply comes later.
func TestBanOnItsWayWhileItIsLifted(t *testing.T) {
	c, reply := newDenyCache(16), new(remote.Request)
	reply.Script, reply.Reply, reply.Sent = &remote.Script{Replies: 1}, []int64{0, time.Hour.Microseconds()}, time.Now()
	banned := func(corrections uint64) bool {
		c.noteBan("k", reply, corrections)
		left, _ := c.banned("k")
		return left > 0
	}
	before := c.corrections("k")
	require.True(t, banned(before))
	c.drop("k")
	require.False(t, banned(before))
}
