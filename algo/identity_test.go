package algo_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
	"github.com/sluice-go/sluice/algo/guard"
	colors "github.com/sluice-go/sluice/algo/marker"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/algo/shares"
	"github.com/sluice-go/sluice/internal/cases"
)

// wrappers change nothing.
var wrappers = map[string]func(algo.Limiter) algo.Limiter{
	"forwarding": func(l algo.Limiter) algo.Limiter { return &forwards{l} },
	"switch":     func(l algo.Limiter) algo.Limiter { return algo.NewSwitch(l) },
	"by key":     func(l algo.Limiter) algo.Limiter { return listed(l, l) },
	"ban": func(l algo.Limiter) algo.Limiter {
		return algo.Must(guard.NewBan(l, algo.Per(1<<20-1, time.Millisecond), time.Second, time.Second))
	},
	"all of one":       func(l algo.Limiter) algo.Limiter { return algo.All(l) },
	"all and no limit": func(l algo.Limiter) algo.Limiter { return algo.All(l, algo.Unlimited()) },
	"no credits":       func(l algo.Limiter) algo.Limiter { return prepaid.First(l, prepaid.NewCredits()) },
	"nested":           func(l algo.Limiter) algo.Limiter { return &forwards{algo.NewSwitch(&forwards{algo.NewSwitch(l)})} },
	"switch of a choice": func(l algo.Limiter) algo.Limiter {
		return algo.NewSwitch(listed(&forwards{l}, l))
	},
}

// forwards is a user's wrapper that only forwards.
type forwards struct{ inner algo.Limiter }

func (f *forwards) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	return f.inner.Acquire(ctx, key, n)
}
func (f *forwards) Unwrap() []algo.Limiter { return []algo.Limiter{f.inner} }

func parsed(text string) func() algo.Limiter {
	return func() algo.Limiter { return algo.Must(algo.Must(algo.Parse(text)).New()) }
}

func marked(make func() (*colors.ThreeColor, error), pass colors.Color) func() algo.Limiter {
	return func() algo.Limiter { return colors.Limit(algo.Must(make()), pass) }
}

// everyLimit makes limits of each kind, but for adaptive.PerKey, whose RetryAfter is an estimate
// by a random sample, so that no twin has it.
var everyLimit = []func() algo.Limiter{
	parsed("10/min"), parsed("10/min burst 3 wait 30s"), parsed("leaky-bucket 10/min"), parsed("pacer 10/min wait 30s"),
	parsed("nginx 10/min burst 5"), parsed("nginx 10/min burst 5 nodelay"), parsed("smooth-bursty 10/min wait 1m"),
	parsed("smooth-warming-up 10/min warmup 10s wait 1m"), parsed("fixed-window 10/min"), parsed("fixed-window 10/day zone UTC"),
	parsed("sliding-window 10/min"), parsed("sliding-window 10/min cells 10"), parsed("sliding-log 10/min"), parsed("strict 10/min"),
	marked(func() (*colors.ThreeColor, error) { return colors.NewSRTCM(algo.PerMinute(10), 5, 5) }, colors.Yellow),
	func() algo.Limiter {
		return algo.Must(shares.New(algo.PerMinute(10), map[string]int64{"a": 5})).Child("a")
	},
	func() algo.Limiter {
		c := prepaid.NewCredits()
		_ = c.TopUp("a", 30)
		return c
	},
	func() algo.Limiter { return algo.All(parsed("10/min")(), parsed("fixed-window 30/min")()) },
	func() algo.Limiter { return algo.All(parsed("10/min")(), algo.Must(adaptive.New(adaptive.Fixed(4)))) },
	func() algo.Limiter { return algo.Shadow(parsed("10/min")()) },
	func() algo.Limiter { return guard.FailuresOnly(parsed("10/min")()) },
	func() algo.Limiter {
		return algo.Must(guard.NewBan(parsed("10/min")(), algo.PerMinute(3), time.Minute, time.Hour))
	},
	func() algo.Limiter {
		c := prepaid.NewCredits()
		_ = c.TopUp("a", 10)
		return prepaid.First(parsed("10/min")(), c)
	},
	func() algo.Limiter { return algo.Must(adaptive.New(adaptive.Fixed(6))) },
	algo.Unlimited, algo.DenyAll,
}

// differs has the differences by intention, by wrapper and type of the limit.
var differs = map[string]string{
	"no credits, *guard.Ban":         "a Ban goes around First, which only asks tentatively",
	"all and no limit, *algo.shadow": "a composition with nothing in force states no numbers",
}

// TestIdentity: a wrapper that changes nothing changes nothing, over each limit.
func TestIdentity(t *testing.T) {
	for name, wrap := range wrappers {
		t.Run(name, func(t *testing.T) {
			over := slices.DeleteFunc(slices.Clone(everyLimit), func(l func() algo.Limiter) bool {
				return differs[fmt.Sprintf("%s, %T", name, l())] != ""
			})
			algotest.RunWrapper(t, wrap, cases.Count(300, 20_000), over...)
		})
	}
}
