package algo_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/adaptive/throttle"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/algo/marker"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/algo/shares"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// all are the limiters of this process, with room for a few units of a key.
func all() map[string]func() algo.Limiter {
	limiters := map[string]func() algo.Limiter{
		"Fixed":    func() algo.Limiter { return algo.Must(adaptive.New(adaptive.Fixed(4))) },
		"AIMD":     func() algo.Limiter { return algo.Must(adaptive.New(strategy.AIMD())) },
		"Default":  func() algo.Limiter { return algo.Must(adaptive.New(adaptive.Default())) },
		"PerKey":   func() algo.Limiter { return algo.Must(adaptive.PerKey(4, adaptive.WithMaxKeys(2))) },
		"throttle": func() algo.Limiter { return algo.Must(throttle.New()) },
		"credits":  func() algo.Limiter { c := prepaid.NewCredits(); _ = c.TopUp("k", 4); return c },
		"learned":  func() algo.Limiter { return learn.New(algo.PerHour(4)) },
		"shares": func() algo.Limiter {
			return algo.Must(shares.New(algo.PerHour(4), map[string]int64{"a": 2})).Child("a")
		},
		"colors": func() algo.Limiter {
			return marker.Limit(algo.Must(marker.NewSRTCM(algo.PerHour(4), 2, 4)), marker.Yellow)
		},
		"DenyAll":   algo.DenyAll,
		"Unlimited": algo.Unlimited,
		"foreign":   func() algo.Limiter { return &oneAtATime{} },
	}
	for _, text := range append(cases.Limits("4/h", nil), "pacer 4/h slack 3") {
		for _, table := range []string{"", " keys 2", " keys 2 deny-new"} {
			limiters[text+table] = func() algo.Limiter { return made(text + table) }
		}
	}
	return limiters
}

// TestW4_LooksAnswerAsCharges: whatever a limiter is composed of, a look and the charge at the
// same instant have one answer: with all units, some and none, to a new key of a full table, and
// for a cost that never fits. The look changes nothing.
func TestW4_LooksAnswerAsCharges(t *testing.T) {
	roomy := func() algo.Limiter { return bucket(algo.PerHour(1_000_000)) }
	compositions := map[string]func(algo.Limiter) algo.Limiter{
		"alone":        func(l algo.Limiter) algo.Limiter { return l },
		"All, first":   func(l algo.Limiter) algo.Limiter { return algo.All(l, roomy()) },
		"All, last":    func(l algo.Limiter) algo.Limiter { return algo.All(roomy(), l) },
		"All of All":   func(l algo.Limiter) algo.Limiter { return algo.All(algo.All(roomy(), l), roomy()) },
		"Shadow":       algo.Shadow,
		"beside trial": func(l algo.Limiter) algo.Limiter { return algo.All(algo.Shadow(bucket(algo.PerHour(1))), l) },
		"Switch":       func(l algo.Limiter) algo.Limiter { return algo.NewSwitch(l) },
		"ByKey": func(l algo.Limiter) algo.Limiter {
			return algo.ByKey(func(context.Context, string) algo.Limiter { return l }, l)
		},
		"Ban": func(l algo.Limiter) algo.Limiter {
			return algo.Must(guard.NewBan(l, algo.PerHour(1000), time.Hour, time.Hour))
		},
		"FailuresOnly": guard.FailuresOnly,
		"First":        func(l algo.Limiter) algo.Limiter { return prepaid.First(l, prepaid.NewCredits()) },
	}
	type answer struct {
		Allowed bool
		Reason  algo.Reason
		Cause   algo.Cause
		Trial   algo.Reason
		Retry   time.Duration
		Delay   time.Duration
		Limit   int64
	}
	of := func(d algo.Decision) answer {
		return answer{d.Allowed, d.Reason, d.Cause, d.Trial, d.RetryAfter, d.Delay, d.Limit}
	}
	pairs := 0
	for name, limiter := range all() {
		for how, compose := range compositions {
			t.Run(name+", "+how, func(t *testing.T) {
				pairs++
				costs := []int64{0, 1, 2, 1 << 40}
				if name == "Default" {
					costs = costs[:3] // it counts requests, whatever they cost, which only a charge knows
				}
				for spent := range 6 {
					for _, n := range costs {
						for _, key := range []string{"k", "new", ""} {
							synctest.Test(t, func(t *testing.T) {
								inner := limiter()
								for _, held := range []string{"k", "other"} {
									for range spent {
										if lease := must(t, inner, held, 1); lease.Delay > 0 {
											lease.Release(algo.Canceled)
										}
									}
								}
								l := compose(inner)
								says := fmt.Sprintf("%d spent, %d units of %q", spent, n, key)
								look, err := algo.Peek(t.Context(), l, key, n)
								again, _ := algo.Peek(t.Context(), l, key, n)
								require.Equal(t, again, look, says)
								lease, chargeErr := l.Acquire(t.Context(), key, n)
								require.Equal(t, chargeErr, err, says)
								require.Equal(t, of(lease.Decision), of(look), says)
								lease.Release(algo.Canceled)
							})
						}
					}
				}
			})
		}
	}
	t.Logf("%d pairs of limiter and composition", pairs)
}
