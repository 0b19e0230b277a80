package algo_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
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

// resizable is a limiter whose rate or burst changes in use.
type resizable interface {
	algo.Limiter
	Allow(key string, n int64) bool
	SetRate(algo.Rate) error
}

// TestRaisedLimitIsNotOverdue: once a rate or a burst is raised, no key waits
// longer than one that has just spent the whole new burst. SmoothBursty and
// SmoothWarmingUp are the exceptions: as in Guava, debt stays.
func TestRaisedLimitIsNotOverdue(t *testing.T) {
	slow, fast := algo.PerHour(10), algo.PerMinute(10)
	for name, c := range map[string]struct {
		make  func(r algo.Rate) resizable
		raise func(l resizable) error
	}{
		"token bucket": {
			func(r algo.Rate) resizable { return algo.Must(algo.NewTokenBucket(r)) },
			func(l resizable) error { return l.SetRate(fast) },
		},
		"token bucket's burst": {
			func(r algo.Rate) resizable { return algo.Must(algo.NewTokenBucket(r, algo.Burst(2))) },
			func(l resizable) error { return l.(*algo.RateLimiter).SetBurst(3) },
		},
		"shaping token bucket": {
			func(r algo.Rate) resizable { return algo.Must(algo.NewTokenBucket(r, algo.MaxWait(time.Minute))) },
			func(l resizable) error { return l.SetRate(fast) },
		},
		"leaky bucket": {
			func(r algo.Rate) resizable { return algo.Must(algo.NewLeakyBucket(r)) },
			func(l resizable) error { return l.SetRate(fast) },
		},
		"pacer": {
			func(r algo.Rate) resizable { return algo.Must(algo.NewPacer(r, algo.Slack(3))) },
			func(l resizable) error { return l.SetRate(fast) },
		},
		"nginx": {
			func(r algo.Rate) resizable { return algo.Must(newNginx(r, algo.Burst(5), algo.DelayAfter(2))) },
			func(l resizable) error { return l.SetRate(fast) },
		},
		"strict": {
			func(r algo.Rate) resizable { return algo.Must(newStrict(r)) },
			func(l resizable) error { return l.SetRate(fast) },
		},
		"fixed window": {
			func(r algo.Rate) resizable { return algo.Must(algo.NewFixedWindow(r)) },
			func(l resizable) error { return l.SetRate(fast) },
		},
		"sliding window": {
			func(r algo.Rate) resizable { return algo.Must(algo.NewSlidingWindow(r)) },
			func(l resizable) error { return l.SetRate(fast) },
		},
		"sliding window of cells": {
			func(r algo.Rate) resizable { return algo.Must(algo.NewSlidingWindow(r, algo.Cells(10))) },
			func(l resizable) error { return l.SetRate(fast) },
		},
		"sliding log": {
			func(r algo.Rate) resizable { return algo.Must(algo.NewSlidingLog(r)) },
			func(l resizable) error { return l.SetRate(fast) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, key := range []string{"", "k"} {
				synctest.Test(t, func(t *testing.T) {
					l, fresh := c.make(slow), c.make(slow)
					for l.Allow(key, 1) || acquire(t, l, key, 1).Allowed {
						continue
					}
					time.Sleep(time.Millisecond)
					require.NoError(t, c.raise(l))
					require.NoError(t, c.raise(fresh))
					for acquire(t, fresh, key, 1).Allowed {
						continue
					}
					most, d := acquire(t, fresh, key, 1).RetryAfter, acquire(t, l, key, 1).Decision
					require.LessOrEqual(t, d.RetryAfter, most)
					time.Sleep(most)
					require.True(t, acquire(t, l, key, 1).Allowed)
				})
			}
		})
	}
}
