package distributed

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// warmupRig runs warmup.lua at instants that the test sets.
type warmupRig struct {
	t      *testing.T
	client *redis.Client
	script *remote.Script
	now    int64
}

func newWarmupRig(t *testing.T) *warmupRig {
	source := strings.Replace(warmupScript.Source(), "redis.pcall('TIME')", "redis.call('MGET', 'sec', 'usec')", 1)
	source = strings.Replace(source, "int(math.max(math.ceil(us / 1000), 1))", "3600000", 1) // keys must not expire in real time
	require.NotEqual(t, warmupScript.Source(), source)
	return &warmupRig{t, redistest.Start(t).Client(), remote.NewScript("warmup", text(source), warmupScript.Args, warmupScript.Replies), 1_700_000_000_000_000}
}

func (r *warmupRig) run(a remote.Args) remote.Answer {
	require.NoError(r.t, r.client.MSet(r.t.Context(), "sec", r.now/1_000_000, "usec", r.now%1_000_000).Err())
	reply := runScript(r.t, r.client, remote.NewRequest(r.script, "k", a))
	return remote.Answer{Now: reply[0], Args: a[:], Reply: reply[1:]}
}

// acquire charges n permits, and sleeps out the delay as one thread calling Guava's acquire does.
func (r *warmupRig) acquire(l limit, n int64) algo.Decision {
	d, _ := l.explain(r.run(l.acquireArgs("k", n)), n)
	r.now += d.Delay.Microseconds()
	return d
}

// Guava's own numbers: RateLimiter.create(2.0, 4 s) takes 4 s for the slope and 2 s below the threshold, and is
// cold again after 4 s without requests.
func TestWarmingUpAsGuava(t *testing.T) {
	r := newWarmupRig(t)
	l := algo.Must(newWarmup(algo.Must(algo.Parse("smooth-warming-up 2/s warmup 4s wait 1000h"))))
	seconds := func(n int, each int64) (delays []float64) {
		for range n {
			delays = append(delays, r.acquire(l, each).Delay.Seconds())
		}
		return delays
	}
	require.Equal(t, []float64{0, 1.375, 1.125, .875, .625, .5, .5, .5, .5, .5, .5}, seconds(11, 1))
	r.now += (500 * time.Millisecond).Microseconds() // the debt
	r.now += (4 * time.Second).Microseconds()
	require.Equal(t, []float64{0}, seconds(1, 8))
	require.Equal(t, []float64{6}, seconds(1, 1))
	// tryAcquire(1, 499 ms) of a warm one with a debt of .5 s.
	r.now += (time.Minute).Microseconds()
	r.run(l.resetArgs("k"))
	seconds(9, 1)
	impatient := algo.Must(newWarmup(algo.Must(algo.Parse("smooth-warming-up 2/s warmup 4s wait 499ms"))))
	d := r.acquire(impatient, 1)
	require.Equal(t, algo.Quota, d.Reason)
	require.Equal(t, time.Millisecond, d.RetryAfter)
	r.now += d.RetryAfter.Microseconds()
	require.Equal(t, 499*time.Millisecond, r.acquire(impatient, 1).Delay)
}

// Script and decide agree on every charge, settlement and refund; in a share of the cost by a microsecond.
func TestWarmingUpAsDecide(t *testing.T) {
	r := newWarmupRig(t)
	rnd := rand.New(rand.NewPCG(61, 62))
	admitted, refunds := 0, 0
	for range max(cases.Count(20, 400), 10) {
		s := fmt.Sprintf("smooth-warming-up %d/%ds warmup %ds cold %.3f wait %ds", 1+rnd.IntN(50), 1+rnd.IntN(20), 1+rnd.IntN(60),
			1.1+rnd.Float64()*5, rnd.IntN(2)*rnd.IntN(100))
		w := algo.Must(newWarmup(algo.Must(algo.Parse(s)))).(*warmup)
		r.run(w.resetArgs("k"))
		require.NoError(t, r.client.Del(t.Context(), "k").Err())
		var held []algo.Handle
		for range 40 {
			r.now += rnd.Int64N(3) * rnd.Int64N(w.Emission*4)
			n := rnd.Int64N(4)
			state := func() *decide.WarmupState {
				a := r.run(w.acquireArgs("k", 0))
				return decide.WarmupDebt(a.Reply[0], a.Reply[1])
			}
			was := state()
			if len(held) > 0 && rnd.IntN(3) == 0 {
				i := rnd.IntN(len(held))
				h := held[i]
				var want *decide.WarmupState
				if n > h.N {
					r.run(w.forceArgs("k", h, n-h.N))
					want, _ = w.decide.ForceCharge(was, chargeOf(h), r.now, n-h.N)
				} else {
					r.run(w.refundArgs(h, h.N-n))
					want, _ = w.decide.Refund(was, chargeOf(h), r.now, h.N-n, 0)
					refunds++
				}
				held[i].N = n
				free, gap := decide.WarmupParts(want, r.now)
				a := r.run(w.acquireArgs("k", 0))
				require.InDelta(t, free, max(a.Reply[0], r.now), 1)
				require.InDelta(t, gap, a.Reply[1], 1)
				continue
			}
			a := r.run(w.acquireArgs("k", n))
			d, h := w.explain(a, n)
			require.Equal(t, d.Allowed, a.Flag() == flagAdmitted, "%+v", a)
			if d.Allowed && n > 0 {
				held = append(held, h)
				admitted++
				want, _, _ := w.decide.Answer(was, r.now, n)
				free, gap := decide.WarmupParts(want, r.now)
				a := r.run(w.acquireArgs("k", 0))
				require.Equal(t, []int64{free, gap}, a.Reply[:2], s)
			}
		}
	}
	require.Greater(t, admitted, 100)
	require.Greater(t, refunds, 20)
}

// A clock that steps back takes the debt along; one that steps forward forgets some of it.
func TestWarmingUpUnderClockSteps(t *testing.T) {
	for _, step := range steps {
		r := newWarmupRig(t)
		l := algo.Must(newWarmup(algo.Must(algo.Parse("smooth-warming-up 1/s warmup 10s wait 1000h"))))
		r.run(l.acquireArgs("k", 5))
		before := r.acquireLook(l)
		r.now += step.Microseconds()
		after := r.acquireLook(l)
		require.LessOrEqual(t, after.NextAfter, before.NextAfter, step)
		if step < 0 {
			require.Equal(t, before.NextAfter, after.NextAfter, step)
		}
	}
}

func (r *warmupRig) acquireLook(l limit) algo.Decision {
	d, _ := l.explain(r.run(l.acquireArgs("k", 0)), 0)
	return d
}
