package algo

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// manyUnits are limits that admit several units at once, of every algorithm that does.
var manyUnits = cases.Limits("8/h", cases.Without{cases.Ahead: "the next unit waits for the first"})

// capacity is how many units of a fresh key l admits at one moment, delayed ones too.
func capacity(t *testing.T, l *RateLimiter) (n int64) {
	for mustAcquire(t, l, "capacity", 1).Allowed {
		n++
	}
	return n
}

func mustAcquire(t *testing.T, l Limiter, key string, n int64) Lease {
	lease, err := l.Acquire(background, key, n)
	require.NoError(t, err)
	return lease
}

// TestU1_NoDenialAtAnOldReading: a caller reads the clock, and before it decides another caller
// takes all units but one, at a later reading. The last unit is there.
func TestU1_NoDenialAtAnOldReading(t *testing.T) {
	verbs := map[string]func(t *testing.T, l *RateLimiter, key string) bool{
		"Acquire": func(t *testing.T, l *RateLimiter, key string) bool { return mustAcquire(t, l, key, 1).Allowed },
		"Peek": func(t *testing.T, l *RateLimiter, key string) bool {
			d, err := l.Peek(background, key, 1)
			require.NoError(t, err)
			return d.Allowed
		},
		"AcquireAll": func(t *testing.T, l *RateLimiter, key string) bool {
			lease, err := AcquireAll(background, Request{made("1/h"), "other", 1}, Request{l, key, 1})
			require.NoError(t, err)
			return lease.Allowed
		},
	}
	for name, verb := range verbs {
		for _, text := range manyUnits {
			for _, key := range []string{"", "k"} {
				synctest.Test(t, func(t *testing.T) {
					l := made(text)
					units := capacity(t, l)
					require.Greater(t, units, int64(2), text)
					mustAcquire(t, l, key, 1)
					time.Sleep(48 * time.Hour) // the key has a slot, and no debt
					during(t, func() { mustAcquire(t, l, key, units-1) })
					require.True(t, verb(t, l, key), "%s, %s, key %q", name, text, key)
				})
			}
		}
	}
}

// TestU1_W4_TwiceInOneDecision: one limiter and key twice, for as much together as fits. It runs
// on the system's clock, which goes on within the decision.
func TestU1_W4_TwiceInOneDecision(t *testing.T) {
	for _, text := range manyUnits {
		for _, key := range []string{"", "k"} {
			for range cases.Count(1000, 10_000) {
				l := made(text)
				units := capacity(t, l)
				lease, err := AcquireAll(background, Request{l, key, 1}, Request{l, key, units - 1})
				require.NoError(t, err)
				require.True(t, lease.Allowed, "%s, key %q", text, key)
			}
		}
	}
}

// TestU1_AtTheSameMoment: as many callers as the burst has units, at one moment of the system's
// clock; of a bucket a million times in a long run.
func TestU1_AtTheSameMoment(t *testing.T) {
	for _, text := range []string{"%d/h", "leaky-bucket %d/h", "pacer 60/h slack 1 queue %d", "sliding-window %d/h cells 4"} {
		for callers := 2; callers <= 64; callers *= 2 {
			var denied atomic.Int64
			rounds := cases.Count(100_000, 1_000_000)
			if !cases.Long() || text != "%d/h" {
				rounds /= callers
			}
			for range rounds {
				l := made(fmt.Sprintf(text, callers))
				var begin, all sync.WaitGroup
				begin.Add(1)
				for range callers {
					all.Go(func() {
						begin.Wait()
						if lease, err := l.Acquire(background, "", 1); err != nil || !lease.Allowed {
							denied.Add(1)
						}
					})
				}
				begin.Done()
				all.Wait()
			}
			t.Logf("%s: %d callers, %d rounds, %d denied", text, callers, rounds, denied.Load())
			require.Zero(t, denied.Load(), "%s, %d callers", text, callers)
		}
	}
}

func made(text string) *RateLimiter { return Must(Must(Parse(text)).New()) }
