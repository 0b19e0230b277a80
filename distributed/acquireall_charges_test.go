//go:build unix

package distributed_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// groupLimits are two buckets and two windows, of which the second of each denies at the end.
func groupLimits(t *testing.T, s *distributed.Store) (all []*distributed.Limiter) {
	for name, text := range []string{"token-bucket 1000/d burst 100000", "token-bucket 1000/d burst 900", "fixed-window 100000/d", "fixed-window 700/d zone UTC"} {
		spec, err := algo.Parse(text)
		require.NoError(t, err)
		all = append(all, must[*distributed.Limiter](t)(s.Limiter(string(rune('a'+name)), spec)))
	}
	return all
}

// charged is how many units Redis has charged: of a bucket to half a unit, because a charge that is
// given back has drained meanwhile.
func charged(d algo.Decision, bucket bool) int64 {
	if bucket {
		return int64((d.ResetAfter + bucketUnit/2) / bucketUnit)
	}
	return d.Limit - d.Remaining
}

const bucketUnit = 24 * time.Hour / 1000

// groupTraffic is callers of groups of limits and what they have spent.
type groupTraffic struct {
	limits []*distributed.Limiter
	spent  [4]atomic.Int64
	closed atomic.Int64
}

// call asks for some of the limits, and cancels, settles or keeps what it gets. Its patience may
// end before the reply comes.
func (g *groupTraffic) call(t *testing.T, rnd *rand.Rand) {
	var reqs []algo.Request
	var of []int
	for i := range g.limits {
		if rnd.IntN(3) > 0 {
			reqs, of = append(reqs, algo.Request{Limiter: g.limits[i], Key: "k", N: 1 + rnd.Int64N(3)}), append(of, i)
		}
	}
	if len(reqs) < 2 {
		return
	}
	patience := time.Duration(1+rnd.IntN(20)) * time.Millisecond
	if rnd.IntN(4) == 0 { // on a busy machine no other call may be answered in time
		patience = time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lease, err := algo.AcquireAll(ctx, reqs...)
	switch how := rnd.IntN(4); {
	case errors.Is(err, distributed.ErrClosed):
		g.closed.Add(1)
	case err != nil:
		t.Error(err)
	case !lease.Allowed:
	case how == 0:
		lease.Release(algo.Canceled)
		lease.Release(algo.Canceled)
	default:
		for i := range reqs {
			n := reqs[i].N
			if how == 1 {
				n = rnd.Int64N(n + 1)
				lease.Part(i).Settle(n)
			}
			g.spent[of[i]].Add(n)
		}
		lease.Release(algo.Succeeded)
	}
}

// TestW4_GroupsLeaveNoCharge: whatever becomes of the callers of groups, of their patience, their
// blocks and one of the limits, Redis has charged exactly the units that were admitted and kept.
func TestW4_GroupsLeaveNoCharge(t *testing.T) {
	for name, opts := range map[string][]distributed.Option{"exact": nil, "blocks": {distributed.WithBlocks(40)}} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			proxy := redistest.StartProxy(t, server)
			client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ReadTimeout: time.Minute}) // a reply that is late is no lost one
			t.Cleanup(func() { _ = client.Close() })
			store := newStore(t, client, append(opts, distributed.WithInstances(1), distributed.WithDenyCache(100),
				distributed.WithFallback(distributed.FallbackDeny))...)
			g := &groupTraffic{limits: groupLimits(t, store)}
			proxy.Set(redistest.Fault{Jitter: 4 * time.Millisecond})
			var callers sync.WaitGroup
			for i := range 16 {
				callers.Go(func() {
					rnd := rand.New(rand.NewPCG(uint64(i), 7))
					for n := range 40 {
						g.call(t, rnd)
						if i == 0 && n == 30 {
							_ = g.limits[0].Close() // never fails
						}
					}
				})
			}
			callers.Wait()
			require.NoError(t, store.Close()) // after the replies on their way
			for i, l := range groupLimits(t, newStore(t, server.Client())) {
				require.Eventually(t, func() bool {
					return charged(remote(t, l, "k", 0).Decision, i < 2) == g.spent[i].Load()
				}, patient, 10*time.Millisecond, "limit %d: %d units were kept", i, g.spent[i].Load())
			}
			require.Positive(t, g.spent[1].Load())
			t.Logf("%d kept of the first bucket, %d calls met its end", g.spent[0].Load(), g.closed.Load())
		})
	}
}
