package distributed_test

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// textLog keeps log lines.
type textLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *textLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *textLog) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.text.String() }

func (l *textLog) logger() distributed.Option {
	return distributed.WithLogger(slog.New(slog.NewTextHandler(io.Writer(l), nil)))
}

// sideBySide makes the same limit in two instances, with two descriptions.
func sideBySide(t *testing.T, server *redistest.Server, log *textLog, e *events, specs ...string) (limits []*distributed.Limiter) {
	for _, text := range specs {
		spec, err := algo.Parse(text)
		require.NoError(t, err)
		store := newStore(t, server.Client(), log.logger(), distributed.WithHook(e.hook), distributed.WithInstances(1),
			distributed.WithFallback(distributed.FallbackDeny))
		limits = append(limits, must[*distributed.Limiter](t)(store.Limiter("shared", spec)))
	}
	return limits
}

func (e *events) count(k distributed.Kind) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.all {
		if ev.Kind == k {
			n++
		}
	}
	return n
}

// TestW3_MixedParameters: while instances use one name with different parameters, as in a
// rolling deployment, none forgives the charges of the others. All together admit at most the
// largest burst and the largest rate, plus, if the rates differ, the burst of the slower one;
// logs, the largest quota in the longest period. And the difference is reported. The table of
// faults has the other limits.
func TestW3_MixedParameters(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		specs [2]string
		bound float64 // of the window of the test, apart from the rate
		rate  float64
	}{
		{[2]string{"10/s burst 100", "10/s burst 20 wait 2s"}, 100, 10},
		{[2]string{"leaky-bucket 100/min burst 100", "pacer 100/min wait 3s"}, 106, 100. / 60},
		{[2]string{"sliding-log 200/h", "sliding-log 20/h"}, 200, 0},
	} {
		t.Run(strings.Join(tc.specs[:], ", "), func(t *testing.T) {
			t.Parallel()
			var e events
			log := new(textLog)
			limits := sideBySide(t, redistest.Start(t), log, &e, tc.specs[:]...)
			began, admitted := time.Now(), 0
			for time.Since(began) < 1500*time.Millisecond {
				for _, l := range limits {
					for range 5 {
						if remote(t, l, "k", 1).Allowed {
							admitted++
						}
					}
				}
			}
			bound := tc.bound + tc.rate*time.Since(began).Seconds()
			t.Logf("W3: %d admitted, %.0f allowed", admitted, bound)
			require.LessOrEqual(t, float64(admitted), bound)
			require.GreaterOrEqual(t, float64(admitted), bound/5, "a limit under which nothing is admitted keeps every bound")
			require.Positive(t, e.count(distributed.MixedParameters))
			require.Contains(t, log.String(), "instances use different parameters for one limit")
			require.Contains(t, log.String(), "limit=shared")
		})
	}
}

// TestW3_SmallerLimitForgivesNobody: the debt under a larger limit outlives the
// decisions of a smaller one.
func TestW3_SmallerLimitForgivesNobody(t *testing.T) {
	t.Parallel()
	for _, specs := range [][2]string{
		{"100/h burst 1000", "100/h burst 10"},
		{"fixed-window 1000/day", "fixed-window 10/h"},
		{"sliding-window 1000/day", "sliding-window 10/h"},
		{"sliding-log 1000/day", "sliding-log 10/h"},
	} {
		var e events
		l := sideBySide(t, redistest.Start(t), new(textLog), &e, specs[:]...)
		require.True(t, remote(t, l[0], "k", 1000).Allowed)
		for range 100 {
			require.False(t, remote(t, l[1], "k", 1).Allowed, "%v: the larger limit has spent more", specs)
		}
		require.LessOrEqual(t, remote(t, l[0], "k", 0).Remaining, int64(1), "%v", specs)
	}
}

// TestF4_AnotherAlgorithmOnTheName: a key of another algorithm is left alone, and
// reported; a value of a later format too.
func TestF4_AnotherAlgorithmOnTheName(t *testing.T) {
	t.Parallel()
	specs := []string{"100/h", "fixed-window 100/h", "sliding-window 100/h", "sliding-log 100/h"}
	server := redistest.Start(t)
	key := distributed.RedisKey("sluice", "shared", "k")
	for i, first := range specs {
		for j, second := range specs {
			if i == j {
				continue
			}
			server.Flush()
			var e events
			log := new(textLog)
			l := sideBySide(t, server, log, &e, first, second)
			require.True(t, remote(t, l[0], "k", 60).Allowed)
			was := fmt.Sprint(server.Do("DUMP", key))
			require.Equal(t, algo.SourceFallback, acquire(t, l[1], "k", 1).Source, "%s after %s", second, first)
			require.Error(t, l[1].Reset(ctx, "k"))
			require.Error(t, l[1].Ban(ctx, "k", time.Second))
			require.Equal(t, was, fmt.Sprint(server.Do("DUMP", key)))
			require.False(t, remote(t, l[0], "k", 41).Allowed, "%s after %s", second, first)
			require.Equal(t, 1, e.count(distributed.KeyFault))
			require.Contains(t, log.String(), "another algorithm")
			require.Contains(t, log.String(), "shared")
			require.NotContains(t, fmt.Sprintf("%v", e.states()), "open")
		}
	}
	server.Flush()
	var e events
	log := sideBySide(t, server, new(textLog), &e, "sliding-log 100/h")
	require.True(t, remote(t, log[0], "k", 60).Allowed)
	busy := must[*distributed.Limiter](t)(newStore(t, server.Client()).InFlight("shared", 100, 30*time.Second))
	require.Equal(t, algo.SourceFallback, acquire(t, busy, "k", 1).Source)
	for _, later := range []string{"1999999999999999999", "g1:2:3:4", "", "nan", "{}"} {
		server.Do("SET", key, later, "EX", 60)
		for _, spec := range specs {
			var e events
			l := sideBySide(t, server, new(textLog), &e, spec)
			require.Equal(t, algo.SourceFallback, acquire(t, l[0], "k", 1).Source)
		}
		require.Equal(t, later, server.Do("GET", key))
	}
}
