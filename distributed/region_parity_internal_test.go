package distributed

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// TestL2_RegionScriptAndDecide: the script and decide agree to the bit on every
// operation, at instants that the test sets, also when the clock steps back.
func TestL2_RegionScriptAndDecide(t *testing.T) {
	client := redistest.Start(t).Client()
	source := strings.Replace(regionScript.Source(), "redis.pcall('TIME')", "redis.call('MGET', 'sec', 'usec')", 1)
	// Keys must not expire in real time.
	source = strings.Replace(source, "int(math.max(math.ceil(us / 1000), 1))", "3600000", 1)
	script := remote.NewScript("region", text(source), regionScript.Args, regionScript.Replies)
	rnd := rand.New(rand.NewPCG(17, 8))
	admitted, leases := 0, 0
	for range cases.Count(10, 300) {
		require.NoError(t, client.FlushAll(t.Context()).Err())
		g := &region{Escrow: decide.Escrow{Advance: rnd.Int64N(20), Hold: rnd.Int64N(200), Memory: 10_000_000 * (1 + rnd.Int64N(3)), Patience: 2_000_000}}
		var s decide.EscrowState
		var name, retry int64
		now := int64(1_700_000_000_000_000)
		for range 300 {
			if now += rnd.Int64N(1 << (1 + rnd.IntN(24))); rnd.IntN(30) == 0 {
				now -= rnd.Int64N(20_000_000)
			}
			require.NoError(t, client.MSet(t.Context(), "sec", now/1_000_000, "usec", now%1_000_000).Err())
			n, before := min(rnd.Int64N(1<<rnd.IntN(6)), g.maxCost()), g.Aged(s, now).Balance
			a, want, flag, wrote := g.acquireArgs("k", n), int64(0), int64(flagDenied), true
			switch op := rnd.IntN(12); {
			case op == 0:
				a, s = g.words(opRefund, n), g.Return(s, now, n)
			case op == 1:
				a, s = g.words(opForce, n), g.Return(s, now, -n)
			case op < 5 && name > 0:
				trip, wait, leased := rnd.Int64N(200_000), rnd.Int64N(3)*rnd.Int64N(1_000_000), name
				if rnd.IntN(8) == 0 {
					leased-- // of another lease
				}
				if rnd.IntN(6) == 0 {
					trip = -1 // it was not reached
				}
				s = g.Lease(s, now, leased, n*4, trip, wait, trip >= 0)
				a = remote.Args{opLease, n * 4, trip, g.Hold, g.Memory, leased, wait}
				leases++
			default:
				next, ok, units := g.Acquire(s, now, n)
				retry = g.RetryAfter(next, now)
				if want = units; ok {
					flag = flagAdmitted
					admitted++
				}
				if n == 0 || !ok && want == 0 {
					next, wrote = s, false
				}
				if want > 0 {
					name = next.Leased
				}
				s = next
			}
			r := remote.NewRequest(script, "k", a)
			reply := runScript(t, client, r)
			require.Equal(t, []int64{now, before, want, flag}, []int64{reply[0], reply[1], reply[2], reply[5]}, "%v", a)
			if want > 0 {
				require.Equal(t, name, reply[3])
			}
			if a[0] == opAcquire {
				require.Equal(t, retry, reply[4], "%v %+v", a, s)
			}
			if wrote && s.Expiry() <= now {
				s = decide.EscrowState{}
			}
		}
	}
	require.Greater(t, admitted, 20)
	require.Greater(t, leases, 20)
}
