package distributed

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// move is one step of a sequence, pause after the one before: lease is the
// number of the lease that it makes or corrects.
type move struct {
	pause time.Duration
	do    string // acquire, settle, cancel, reset
	lease int
	n     int64
}

func (m move) String() string { return fmt.Sprintf("+%v %s #%d %d", m.pause, m.do, m.lease, m.n) }

func acquires(pause time.Duration, lease int, n int64) move {
	return move{pause, "acquire", lease, n}
}
func settles(pause time.Duration, lease int, n int64) move { return move{pause, "settle", lease, n} }
func cancels(pause time.Duration, lease int) move          { return move{pause, "cancel", lease, 0} }
func resets(pause time.Duration) move                      { return move{pause, "reset", 0, 0} }

const sec = time.Second

// refundMoves are sequences in which refunds are not obvious.
var refundMoves = map[string][]move{
	"a long stream settles below its estimate": {
		acquires(0, 1, 20), acquires(sec, 2, 20), acquires(sec, 3, 20), settles(28*sec, 3, 5), settles(sec, 2, 5), cancels(sec, 1),
	},
	"a charge that has drained": {acquires(0, 1, 5), acquires(20*sec, 2, 5), cancels(sec, 1), cancels(sec, 2)},
	"in the order of the charges": {
		acquires(0, 1, 10), acquires(sec, 2, 10), acquires(sec, 3, 10), cancels(sec, 1), cancels(sec, 2), cancels(sec, 3),
	},
	"in the reverse order": {
		acquires(0, 1, 10), acquires(sec, 2, 10), acquires(sec, 3, 10), cancels(sec, 3), cancels(sec, 2), cancels(sec, 1),
	},
	"after another refund": {acquires(0, 1, 30), acquires(sec, 2, 30), cancels(5*sec, 1), acquires(sec, 3, 20), cancels(5*sec, 2)},
	"step by step":         {acquires(0, 1, 40), settles(sec, 1, 30), settles(sec, 1, 20), settles(sec, 1, 10), cancels(sec, 1)},
	"up and down":          {acquires(0, 1, 10), settles(sec, 1, 50), settles(sec, 1, 20), cancels(sec, 1)},
	"beyond the bucket":    {acquires(0, 1, 10), acquires(sec, 2, 5), settles(sec, 1, 1<<40), settles(sec, 1, 0), cancels(sec, 2)},
	"after a reset":        {acquires(0, 1, 30), resets(sec), acquires(sec, 2, 40), cancels(sec, 1), cancels(sec, 2)},
	"after two resets":     {acquires(0, 1, 30), resets(sec), acquires(sec, 2, 40), resets(sec), acquires(sec, 3, 9), cancels(sec, 2), cancels(sec, 1)},
	"delayed":              {acquires(0, 1, 60), acquires(sec, 2, 10), acquires(sec, 3, 10), cancels(sec, 2), cancels(15*sec, 3)},
	"a key that was idle":  {acquires(0, 1, 30), cancels(sec, 1), acquires(200*sec, 2, 30), cancels(sec, 1), cancels(sec, 2)},
}

// randomMoves makes a sequence of n steps.
func randomMoves(rnd *rand.Rand, n int) (moves []move) {
	leases := 0
	for range n {
		m := move{pause: time.Duration(1+rnd.IntN(4000)) * time.Millisecond, do: "acquire", n: 1 + rnd.Int64N(25)}
		if rnd.IntN(8) == 0 {
			m.pause *= 20
		}
		switch k := rnd.IntN(10); {
		case k < 5 || leases == 0:
			leases++
			m.lease = leases
		case k == 9 && rnd.IntN(4) == 0:
			m.do = "reset"
		case k < 8:
			m.do, m.lease, m.n = "settle", 1+rnd.IntN(leases), rnd.Int64N(40)
		default:
			m.do, m.lease = "cancel", 1+rnd.IntN(leases)
		}
		moves = append(moves, m)
	}
	return moves
}

// onlyDown leaves out the settlements above the estimate. A sliding log on Redis
// knows each unit and gives back those that a settlement has added, too; a local
// one does not.
func onlyDown(moves []move) (down []move) {
	cost := map[int]int64{}
	for _, m := range moves {
		if m.do == "settle" && m.n > cost[m.lease] {
			m.n = cost[m.lease]
		}
		if m.do == "acquire" || m.do == "settle" {
			cost[m.lease] = m.n
		}
		down = append(down, m)
	}
	return down
}

// refundTarget is a limiter that the sequences run on.
type refundTarget struct {
	limiter algo.Limiter
	reset   func()
	sleep   func(time.Duration)
}

// decisions runs moves, and returns the decision of each and of a peek after it.
func (r refundTarget) decisions(t *testing.T, moves []move) (all []algo.Decision) {
	leases := map[int]*algo.Lease{}
	for _, m := range moves {
		r.sleep(m.pause)
		switch m.do {
		case "acquire":
			lease, err := r.limiter.Acquire(context.Background(), "k", m.n)
			require.NoError(t, err)
			leases[m.lease] = &lease
			all = append(all, lease.Decision)
		case "settle":
			leases[m.lease].Settle(m.n)
		case "cancel":
			leases[m.lease].Release(algo.Canceled)
		case "reset":
			r.reset()
		}
		peek, err := r.limiter.Acquire(context.Background(), "k", 0)
		require.NoError(t, err)
		all = append(all, peek.Decision)
	}
	return all
}

// locally runs moves on a local limiter, in virtual time.
func locally(t *testing.T, spec algo.Spec, moves []move) (all []algo.Decision) {
	synctest.Test(t, func(t *testing.T) {
		l, err := spec.New()
		require.NoError(t, err)
		all = refundTarget{l, func() { l.Reset("k") }, time.Sleep}.decisions(t, moves)
	})
	return all
}

// virtualClock is the clock of a real server, for the scripts: they read it from
// a key.
type virtualClock struct {
	client *redis.Client
	now    time.Time
}

const clockKey = "::clock"

// useVirtualClock replaces the clock of the scripts until the test ends. No other
// test may run meanwhile.
func useVirtualClock(t *testing.T, client *redis.Client) *virtualClock {
	usePrelude(t, prelude())
	for _, s := range []*remote.Script{bucketScript, fixedWindowScript, slidingWindowScript, logScript, inFlightScript} {
		was := *s
		source := strings.Replace(s.Source(), "redis.pcall('TIME')", "redis.call('LRANGE', '"+clockKey+"', 0, 1)", 1)
		require.NotEqual(t, was.Source(), source)
		*s = *remote.NewScript(s.Name, text(source), s.Args, s.Replies)
		t.Cleanup(func() { *s = was })
	}
	// Where a bubble of synctest begins.
	c := &virtualClock{client, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
	c.sleep(0)
	return c
}

func (c *virtualClock) sleep(d time.Duration) {
	c.now = c.now.Add(d)
	pipe := c.client.TxPipeline()
	pipe.Del(context.Background(), clockKey)
	pipe.RPush(context.Background(), clockKey, c.now.Unix(), c.now.Nanosecond()/1000)
	if _, err := pipe.Exec(context.Background()); err != nil {
		panic(err)
	}
}

// TestL2_RefundsAsLocally: the same sequence gives the same units, the same
// decisions and, to one tick of each clock, the same times on a real server and
// in the process.
func TestL2_RefundsAsLocally(t *testing.T) {
	client := redistest.Start(t).Client()
	clock := useVirtualClock(t, client)
	store, err := New(client, WithTimeout(5*time.Second), WithInstances(1), WithDenyCache(0), WithFallback(FallbackDeny),
		WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	for i, text := range []string{
		"60/min", "60/min wait 30s", "leaky-bucket 60/min burst 40", "pacer 60/min slack 20 wait 40s",
		"fixed-window 60/min", "fixed-window 60/min offset 7s aligned 1999-12-31T23:59:58Z", "sliding-window 60/min", "sliding-log 60/min",
	} {
		spec, err := algo.Parse(text)
		require.NoError(t, err)
		runs := 0
		same := func(t *testing.T, moves []move) {
			t.Helper()
			if spec.Algorithm == "sliding-log" {
				moves = onlyDown(moves)
			}
			runs++
			local := locally(t, spec, moves)
			clock.now = clock.now.Truncate(24 * time.Hour).Add(24 * time.Hour) // where a window begins
			clock.sleep(0)
			require.NoError(t, client.FlushDB(t.Context()).Err())
			clock.sleep(0)
			l, err := store.Limiter(fmt.Sprint(i), spec)
			require.NoError(t, err)
			target := refundTarget{l, func() { require.NoError(t, l.Reset(t.Context(), "k")) }, clock.sleep}
			requireSameDecisions(t, moves, local, target.decisions(t, moves))
		}
		t.Run(text, func(t *testing.T) {
			for name, moves := range refundMoves {
				t.Run(name, func(t *testing.T) { same(t, moves) })
			}
			rnd := rand.New(rand.NewPCG(7, uint64(i)))
			for range cases.Count(30, 1000) {
				same(t, randomMoves(rnd, 40))
			}
			t.Logf("L2: %d sequences of charges and refunds agree", runs)
		})
	}
}

func requireSameDecisions(t *testing.T, moves []move, local, remote []algo.Decision) {
	t.Helper()
	require.Len(t, remote, len(local))
	const tick = float64(time.Microsecond + time.Nanosecond)
	for i, want := range local {
		got := remote[i]
		about := fmt.Sprintf("decision %d of %v: local %+v, remote %+v", i, moves, want, got)
		require.Equal(t, algo.SourceRemote, got.Source, about)
		require.Equal(t, want.Allowed, got.Allowed, about)
		require.Equal(t, want.Reason, got.Reason, about)
		require.Equal(t, want.Limit, got.Limit, about)
		require.Equal(t, want.Remaining, got.Remaining, about)
		require.InDelta(t, want.Delay, got.Delay, tick, about)
		require.InDelta(t, want.NextAfter, got.NextAfter, tick, about)
		require.InDelta(t, want.ResetAfter, got.ResetAfter, tick, about)
		if want.RetryAfter != algo.Forever {
			require.InDelta(t, want.RetryAfter, got.RetryAfter, tick, about)
		}
	}
}
