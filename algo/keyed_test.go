package algo_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// TestFixedWindowQuotaRaisedAtOnce: a raised quota counts in the window that
// runs, and a lowered one as well.
func TestFixedWindowQuotaRaisedAtOnce(t *testing.T) {
	for _, key := range []string{"", "k"} {
		synctest.Test(t, func(t *testing.T) {
			l := algo.Must(algo.NewFixedWindow(algo.PerHour(3)))
			require.EqualValues(t, 3, spendAll(l, key))
			require.NoError(t, l.SetRate(algo.PerHour(5)))
			require.EqualValues(t, 2, spendAll(l, key))
			require.NoError(t, l.SetRate(algo.PerHour(4)))
			require.Zero(t, spendAll(l, key))
			require.NoError(t, l.SetRate(algo.PerHour(6)))
			require.EqualValues(t, 1, spendAll(l, key))
			time.Sleep(time.Hour)
			require.EqualValues(t, 6, spendAll(l, key))
		})
	}
}

// TestRaisedLimitIsNotOverdue: once a rate or a burst is raised, no key waits longer than one
// that has just spent the whole new burst.
func TestRaisedLimitIsNotOverdue(t *testing.T) {
	faster := func(l *algo.RateLimiter) error { return l.SetRate(algo.PerMinute(10)) }
	for _, text := range append(cases.Limits("10/h", cases.Without{
		cases.Ahead: "as in Guava, debt stays",
		"zone":      "the rate is of a day",
		"spread":    "another limiter has other windows",
	}), "10/h", "pacer 10/h slack 3", "sliding-window 10/h cells 10") {
		notOverdue(t, text, faster)
	}
	notOverdue(t, "10/h burst 2", func(l *algo.RateLimiter) error { return l.SetBurst(3) })
}

func notOverdue(t *testing.T, text string, raise func(*algo.RateLimiter) error) {
	for _, key := range []string{"", "k"} {
		t.Run(text+"/"+key, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, fresh := made(text), made(text)
				for acquire(t, l, key, 1).Allowed {
					continue
				}
				time.Sleep(time.Millisecond)
				require.NoError(t, raise(l))
				require.NoError(t, raise(fresh))
				for acquire(t, fresh, key, 1).Allowed {
					continue
				}
				most, d := acquire(t, fresh, key, 1).RetryAfter, acquire(t, l, key, 1).Decision
				require.LessOrEqual(t, d.RetryAfter, most)
				time.Sleep(most)
				require.True(t, acquire(t, l, key, 1).Allowed)
			})
		})
	}
}
