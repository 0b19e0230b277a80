package algo_test

import (
	"flag"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/algo"
	colors "github.com/sluice-go/sluice/algo/marker"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// All charged or none, and the answer's RetryAfter is the largest of the
// parts and exact, for any limits, costs, orders and repetitions.
func TestW4_Compositions(t *testing.T) {
	checks(t, "W4: %d lists of limits, with repetitions")
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) { // a bubble has no deadline
			limits := drawLimits(t)
			for range rapid.IntRange(1, 8).Draw(t, "steps") {
				time.Sleep(time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "pause")))
				step(t, limits, drawRequests(t, limits))
			}
		})
	})
}

// The same for every algorithm, each limit and key at most once: a limit that
// lets earlier callers' debt be paid by later ones has no sum.
func TestW4_CompositionsOfEveryAlgorithm(t *testing.T) {
	checks(t, "W4: %d lists of limits of every kind")
	specs := append(cases.Limits("5/2s", nil), cases.Limits("7/s", nil)...)
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			var limits []algo.Limiter
			for _, text := range rapid.SliceOfNDistinct(rapid.SampledFrom(specs), 1, 4, rapid.ID).Draw(t, "specs") {
				spec, err := algo.Parse(text)
				require.NoError(t, err)
				limits = append(limits, algo.Must(spec.New()))
			}
			marker, err := colors.NewSRTCM(algo.PerSecond(3), 4, 2)
			require.NoError(t, err)
			limits = append(limits, colors.Limit(marker, rapid.SampledFrom([]colors.Color{colors.Green, colors.Yellow}).Draw(t, "pass")))
			for range rapid.IntRange(1, 8).Draw(t, "steps") {
				time.Sleep(time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "pause")))
				var reqs []algo.Request
				for _, l := range rapid.Permutation(limits).Draw(t, "order") {
					reqs = append(reqs, algo.Request{Limiter: l, Key: "a", N: rapid.Int64Range(0, 6).Draw(t, "n")})
				}
				step(t, limits, reqs)
			}
		})
	})
}

func drawLimits(t *rapid.T) (ls []algo.Limiter) {
	st := new(store)
	for i := range rapid.IntRange(1, 4).Draw(t, "limits") {
		r := algo.Per(rapid.Int64Range(1, 9).Draw(t, "count"), time.Duration(rapid.Int64Range(1000, int64(time.Minute)).Draw(t, "period")))
		opts := []algo.Option{algo.Burst(rapid.Int64Range(1, 12).Draw(t, "burst"))}
		if rapid.Bool().Draw(t, "shapes") {
			opts = append(opts, algo.MaxWait(time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "wait"))))
		}
		switch l := bucket(r, opts...); rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			ls = append(ls, l)
		case 1:
			ls = append(ls, &foreign{Limiter: l})
		case 2:
			ls = append(ls, &shared{st, l})
		default:
			t.Fatal("no such kind", i)
		}
	}
	return ls
}

func drawRequests(t *rapid.T, limits []algo.Limiter) (reqs []algo.Request) {
	for range rapid.IntRange(2, 6).Draw(t, "requests") {
		reqs = append(reqs, algo.Request{
			Limiter: rapid.SampledFrom(limits).Draw(t, "limiter"),
			Key:     rapid.SampledFrom([]string{"", "a"}).Draw(t, "key"),
			N:       rapid.Int64Range(0, 7).Draw(t, "n"),
		})
	}
	return reqs
}

func step(t *rapid.T, limits []algo.Limiter, reqs []algo.Request) {
	before := owed(t, limits)
	lease := acquireAll(t, reqs...)
	parts := lease.Parts()
	require.Len(t, parts, len(reqs))
	var retry time.Duration
	allowed := true
	for _, p := range parts {
		retry = max(retry, p.RetryAfter)
		allowed = allowed && p.Allowed
	}
	require.Equal(t, allowed, lease.Allowed)
	require.Equal(t, retry, lease.RetryAfter, "the largest of the parts")
	if lease.Allowed {
		for i, l := range limits {
			for _, key := range []string{"", "a"} {
				require.Equal(t, asks(reqs, l, key) > 0, owed(t, limits)[i][key] != before[i][key])
			}
		}
		return
	}
	require.Equal(t, before, owed(t, limits), "nothing is charged")
	if lease.Reason == algo.Never {
		require.Equal(t, algo.Forever, lease.RetryAfter)
		return
	}
	time.Sleep(lease.RetryAfter - 1)
	early := acquireAll(t, reqs...)
	require.False(t, early.Allowed, "one nanosecond early: %+v", early.Parts())
	time.Sleep(time.Nanosecond)
	again := acquireAll(t, reqs...)
	require.True(t, again.Allowed, "RetryAfter %v suffices: %+v", lease.RetryAfter, again.Parts())
}

// owed returns the peeked decision of each limit, by key.
func owed(t require.TestingT, limits []algo.Limiter) (ds []map[string]algo.Decision) {
	for _, l := range limits {
		ds = append(ds, map[string]algo.Decision{"": peek(t, l, ""), "a": peek(t, l, "a")})
	}
	return ds
}

func asks(reqs []algo.Request, l algo.Limiter, key string) (n int64) {
	for _, r := range reqs {
		if r.Limiter == l && r.Key == key {
			n += r.N
		}
	}
	return n
}

// checks lets rapid try more in a long run, and says how many as format wants.
func checks(t *testing.T, format string) {
	t.Helper()
	n := cases.Count(100, 50_000)
	was := flag.Lookup("rapid.checks").Value.String()
	require.NoError(t, flag.Set("rapid.checks", strconv.Itoa(n)))
	t.Cleanup(func() {
		require.NoError(t, flag.Set("rapid.checks", was))
		t.Logf(format, n)
	})
}
