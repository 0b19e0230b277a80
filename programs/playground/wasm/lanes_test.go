package main

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/classic"
)

// as makes the result of a constructor a Limiter.
func as[L algo.Limiter](l L, err error) (algo.Limiter, error) { return l, err }

// snippets are what the page copies as Go, compiled.
var snippets = map[string]func() (algo.Limiter, error){
	"token-bucket":   func() (algo.Limiter, error) { return as(algo.NewTokenBucket(algo.PerSecond(20), algo.Burst(12))) },
	"leaky-bucket":   func() (algo.Limiter, error) { return as(algo.NewLeakyBucket(algo.PerSecond(20), algo.Burst(12))) },
	"pacer":          func() (algo.Limiter, error) { return as(algo.NewPacer(algo.PerSecond(20), algo.MaxWait(time.Second))) },
	"nginx":          func() (algo.Limiter, error) { return as(classic.NewNginx(algo.PerSecond(20), 12, 0)) },
	"fixed-window":   func() (algo.Limiter, error) { return as(algo.NewFixedWindow(algo.PerSecond(20))) },
	"sliding-window": func() (algo.Limiter, error) { return as(algo.NewSlidingWindow(algo.PerSecond(20))) },
	"sliding-cells":  func() (algo.Limiter, error) { return as(algo.NewSlidingWindow(algo.PerSecond(20), algo.Cells(10))) },
	"sliding-log":    func() (algo.Limiter, error) { return as(algo.NewSlidingLog(algo.PerSecond(20))) },
	"strict": func() (algo.Limiter, error) {
		return as(algo.Spec{Algorithm: "strict", Rate: algo.PerSecond(20)}.New())
	},
	"smooth-bursty": func() (algo.Limiter, error) {
		return as(classic.NewSmoothBursty(algo.PerSecond(20), time.Second, algo.Burst(12)))
	},
	"warming-up": func() (algo.Limiter, error) {
		return as(classic.NewSmoothWarmingUp(algo.PerSecond(20), 3*time.Second, 3, time.Second))
	},
}

// TestSnippets: what the page copies as Go is compiled here, and makes the limit that the
// page shows and copies as YAML.
func TestSnippets(t *testing.T) {
	source, err := os.ReadFile("lanes_test.go")
	require.NoError(t, err)
	s := settings{"burst", 60, 20, 12}
	for _, a := range algorithms {
		code := fill(a.code, s)
		require.Contains(t, string(source), "as("+code+")", a.name)
		limiter, err := snippets[a.name]()
		require.NoError(t, err)
		parsed, err := algo.Parse(fill(a.spec, s))
		require.NoError(t, err, a.name)
		shown, err := parsed.New()
		require.NoError(t, err)
		want := algo.About(limiter)
		got := algo.About(shown)
		require.Equal(t, want, got, a.name)
		require.IsType(t, limiter, shown)
	}
	require.Len(t, snippets, len(algorithms))
}

// TestPlay: every request is counted once, the bounds hold, and the same settings show
// the same picture.
func TestPlay(t *testing.T) {
	for load := range loads {
		s := settings{load, 60, 20, 12}
		var first, again page
		synctest.Test(t, func(t *testing.T) {
			var err error
			first, err = play(s)
			require.NoError(t, err)
			again, err = play(s)
			require.NoError(t, err)
		})
		require.Equal(t, first, again)
		require.Len(t, first.Lanes, len(algorithms))
		offered := sum(first.Offered)
		for _, l := range first.Lanes {
			require.Equal(t, offered, l.Totals[0]+l.Totals[1]+l.Totals[2], l.Name)
			require.Equal(t, l.Totals[0], sum(l.AtOnce), l.Name)
			require.Equal(t, l.Totals[2], sum(l.Denied), l.Name)
			require.Positive(t, l.Totals[2], "%s denies nothing at three times its limit", l.Name)
			switch l.Name {
			case "token-bucket", "leaky-bucket":
				require.LessOrEqual(t, l.Densest, 20+12, l.Name)
			case "strict", "sliding-log", "sliding-cells":
				require.LessOrEqual(t, l.Densest, 20, l.Name)
			}
			require.True(t, strings.HasPrefix(l.YAML, "limits:\n"), l.YAML)
		}
	}
}

// TestSettingsAreClamped: an address of the page may say anything.
func TestSettingsAreClamped(t *testing.T) {
	require.Equal(t, settings{"burst", 1, 200, 1}, settings{"x", -5, 1 << 40, 0}.clamped())
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}
