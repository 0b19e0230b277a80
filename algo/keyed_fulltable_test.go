package algo_test

import (
	"bytes"
	"fmt"
	"log"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// TestM1_ManyUsersAreServed: with the default options 200 000 users that need 4 %
// of their quota are all served, in less than 64 MiB.
func TestM1_ManyUsersAreServed(t *testing.T) {
	const users = 200_000
	requests := cases.Count(2*users, 40*users)
	for _, name := range cases.Limits("300/day", atOnce) {
		synctest.Test(t, func(t *testing.T) {
			before := heap()
			l := made(name)
			rnd := rand.New(rand.NewPCG(1, 2))
			served := 0
			var room [20]byte
			for range requests {
				time.Sleep(24 * time.Hour / time.Duration(requests))
				if l.Allow(string(fmt.Appendf(room[:0], "user-%d", rnd.IntN(users))), 1) {
					served++
				}
			}
			took := heap() - before
			t.Logf("M1: %s: %d of %d requests served, %.1f MB", name, served, requests, float64(took)/(1<<20))
			require.Greater(t, served, requests*999/1000, name)
			if !strings.HasPrefix(name, "sliding") { // they keep more than a word of each key
				require.Less(t, took, uint64(64<<20), name)
			}
			require.Zero(t, l.Stats().Overflowed)
		})
	}
}

// TestM2_NewcomersDuringAFlood: while 20 000 new keys a second arrive, honest new
// users are served, and users with a spent quota stay denied.
func TestM2_NewcomersDuringAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := cases.Count(1<<15, 1<<20)
		l := algo.Must(algo.NewFixedWindow(algo.PerDay(5), algo.MaxKeys(room)))
		for l.Allow("abuser", 1) {
		}
		lines := logged(t)
		require.Equal(t, room, l.Stats().Room)
		honest, served, abused := 0, 0, 0
		for i := range 6 * room {
			l.Allow(fmt.Sprint("flood-", i), 1)
			if i%200 != 0 {
				continue
			}
			time.Sleep(10 * time.Millisecond)
			honest++
			if l.Allow(fmt.Sprint("honest-", i), 1) {
				served++
			}
			if l.Allow("abuser", 1) {
				abused++
			}
		}
		t.Logf("M2: %d of %d newcomers served, %d flood keys, %d evicted", served, honest, 6*room, l.Stats().Overflowed)
		require.Greater(t, served, honest*95/100)
		require.Zero(t, abused)
		require.Positive(t, l.Stats().Overflowed)
		require.Regexp(t, `^algo: the table of a limiter is full: raise MaxKeys, or find the client that invents keys: code=algo.full limit=5-per-24h0m0s overflowed=1\n`, lines.String())
		require.Less(t, strings.Count(lines.String(), "\n"), 3+6*room/20_000/60, "a line a minute")
	})
}

// TestRefundsDuringAFlood: canceled requests are given back while keys are evicted, if
// they took no longer than 2000 evictions: a tenth of a second at 20 000 new keys a
// second.
func TestRefundsDuringAFlood(t *testing.T) {
	l := bucket(algo.PerDay(5), algo.MaxKeys(1<<14))
	look := func(i int) bool { return i%100 == 0 } // Stats walks the table
	overflowed := uint64(0)
	for i := 0; overflowed < 10_000; i++ {
		if l.Allow(fmt.Sprint("flood", i), 1); look(i) {
			overflowed = l.Stats().Overflowed
		}
	}
	type one struct {
		key   string
		lease algo.Lease
		at    uint64
	}
	var open []one
	honest, refunded := 0, 0
	for i := 0; honest < 1000; i++ {
		if l.Allow(fmt.Sprint("more", i), 1); look(i) {
			overflowed = l.Stats().Overflowed
		}
		if i%10 == 0 {
			key := fmt.Sprint("honest", i)
			l.Allow(key, 1) // so that the flood does not evict it
			open = append(open, one{key, must(t, l, key, 3), overflowed})
		}
		if first := &open[0]; overflowed > first.at+2000 {
			honest++
			first.lease.Release(algo.Canceled)
			if must(t, l, first.key, 0).Remaining >= 4 {
				refunded++
			}
			open = open[1:]
		}
	}
	t.Logf("%d of %d refunded", refunded, honest)
	require.Greater(t, refunded, honest*95/100)
}

// TestFailuresOnlyInAFullTable: a key that could not be charged later is not
// admitted.
func TestFailuresOnlyInAFullTable(t *testing.T) {
	for _, opts := range [][]algo.Option{{algo.MaxKeys(8)}, {algo.MaxKeys(8), algo.DenyNew()}} {
		inner := bucket(algo.PerHour(5), opts...)
		l, admitted := guard.FailuresOnly(inner), 0
		for i := range 500 {
			inner.Allow(fmt.Sprint("fill", i), 2)
		}
		for range 1000 {
			if lease := must(t, l, "new", 1); lease.Allowed {
				admitted++
				lease.Release(algo.Failed)
			}
		}
		require.LessOrEqual(t, admitted, 5)
	}
}

// TestLargeFirstChargeLeavesNoLargeRings: the ring of a key that spends much at once
// is not the ring of those that come after it.
func TestLargeFirstChargeLeavesNoLargeRings(t *testing.T) {
	l := algo.Must(algo.NewSlidingLog(algo.PerMinute(10_000)))
	l.Allow("large", 10_000)
	before := heap()
	for i := range 400 {
		l.Allow(fmt.Sprint("small", i), 1)
	}
	grown := int64(heap()) - int64(before)
	require.Less(t, grown, int64(1<<20))
	require.False(t, l.Allow("large", 1))
}

// logged returns the output of package log during the test.
func logged(t *testing.T) *bytes.Buffer {
	out, flags, before := new(bytes.Buffer), log.Flags(), log.Writer()
	t.Cleanup(func() {
		log.SetOutput(before)
		log.SetFlags(flags)
	})
	log.SetOutput(out)
	log.SetFlags(0)
	return out
}
