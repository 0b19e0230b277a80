package distributed

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// steps are those of the server's clock.
var steps = []time.Duration{-time.Hour, -30 * time.Second, 30 * time.Second, time.Hour}

// useVirtualClockInAll is useVirtualClock for the scripts that are made later, too, and for heartbeats.
func useVirtualClockInAll(t *testing.T, client *redis.Client) *virtualClock {
	clock := useVirtualClock(t, client)
	usePrelude(t, strings.Replace(prelude(), "redis.pcall('TIME')", "redis.call('LRANGE', '"+clockKey+"', 0, 1)", 1))
	for _, s := range []*remote.Script{learnedScript, regionScript, heartbeatScript, creditsScript, warmupScript} {
		was := *s
		source := strings.Replace(s.Source(), "redis.pcall('TIME')", "redis.call('LRANGE', '"+clockKey+"', 0, 1)", 1)
		source = strings.Replace(source, "redis.call('TIME')", "redis.call('LRANGE', '"+clockKey+"', 0, 1)", 1)
		require.NotEqual(t, was.Source(), source)
		*s = *remote.NewScript(s.Name, text(source), s.Args, s.Replies)
		t.Cleanup(func() { *s = was })
	}
	return clock
}

// stepped is a limiter whose key is denied, and how long it may stay so after any step.
type stepped struct {
	limiter algo.Limiter
	longest time.Duration // twice the burst, period, expiry or ban
}

// steppedCases make, for each script, the limits whose keys are denied.
var steppedCases = map[string]func(*testing.T, *Store, string) []stepped{
	"bucketfirst":   steppedSpecs("10/s"),
	"bucket":        steppedSpecs("10/s", "10/s wait 2s", "leaky-bucket 10/s", "pacer 10/s slack 9"),
	"fixedwindow":   steppedSpecs("fixed-window 10/s", "fixed-window 10/s offset 300ms", "fixed-window 10/min"),
	"warmup":        steppedSpecs("smooth-warming-up 10/s warmup 1s", "smooth-warming-up 10/s warmup 1s cold 9 wait 2s"),
	"slidingwindow": steppedSpecs("sliding-window 10/s", "sliding-window 10/min"),
	"unitset": func(t *testing.T, s *Store, key string) []stepped {
		l, err := s.InFlight("in flight", 10, 2*time.Second)
		require.NoError(t, err)
		all := steppedSpecs("sliding-log 10/s")(t, s, key)
		return append(all, stepped{forgets{l}, 4 * time.Second})
	},
	"shares": func(t *testing.T, s *Store, _ string) (all []stepped) {
		shares, err := s.Shares("shares", algo.PerSecond(10), map[string]int64{"a": 5, "b": 2})
		require.NoError(t, err)
		for _, name := range []string{"a", "b", "c"} {
			all = append(all, stepped{shares.Child(name), 2 * time.Second})
		}
		return all
	},
	"region": func(t *testing.T, s *Store, _ string) []stepped {
		global, err := s.TokenBucket("global", algo.PerSecond(10))
		require.NoError(t, err)
		home := redis.NewClient(s.client.(*redis.Client).Options())
		t.Cleanup(func() { _ = home.Close() })
		region, err := New(home, WithTimeout(time.Minute), WithInstances(1), WithPrefix(s.prefix+"home"), WithFallback(FallbackDeny))
		require.NoError(t, err)
		t.Cleanup(func() { _ = region.Close() })
		l, err := region.Region(global, 1, 10)
		require.NoError(t, err)
		return []stepped{{l, 30 * time.Second}} // patience, and the memory of its advance
	},
	"ban": func(t *testing.T, s *Store, key string) []stepped {
		l, err := s.TokenBucket("bans", algo.PerSecond(10))
		require.NoError(t, err)
		b, err := NewBan(l, algo.PerSecond(30), 4*time.Second, 8*time.Second)
		require.NoError(t, err)
		for algo.Must(b.Acquire(t.Context(), key, 1)).Reason != algo.Banned {
		}
		return []stepped{{b, (4 + 8) * time.Second}}
	},
	"learned": func(t *testing.T, s *Store, key string) []stepped {
		l, err := s.Learned("partner", algo.PerSecond(10))
		require.NoError(t, err)
		l.Answered(key, learn.Answer{Sent: time.Now(), Denied: true, Wait: 3 * time.Second})
		return []stepped{{forgetful{l}, 6 * time.Second}}
	},
}

func steppedSpecs(texts ...string) func(*testing.T, *Store, string) []stepped {
	return func(t *testing.T, s *Store, _ string) (all []stepped) {
		for _, text := range texts {
			spec := algo.Must(algo.Parse(text))
			l, err := s.Limiter(text, spec)
			require.NoError(t, err)
			all = append(all, stepped{l, 2 * (spec.Rate.Period + spec.MaxWait)})
		}
		return all
	}
}

// forgets is a limit whose instance is gone: nobody renews its units.
type forgets struct{ *Limiter }

func (f forgets) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	lease, err := f.Limiter.Acquire(ctx, key, n)
	f.slots.mu.Lock()
	defer f.slots.mu.Unlock()
	clear(f.slots.remote)
	return lease, err
}

// forgetful is a learned limit of an instance that keeps no wait itself.
type forgetful struct{ *Learned }

func (f forgetful) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	f.mu.Lock()
	clear(f.known)
	f.mu.Unlock()
	return f.Learned.Acquire(ctx, key, n)
}

// TestW3_ClockStepsOfAllScripts: after any step of the server's clock, by every script, a key is denied for
// at most one burst, period, expiry or ban longer than one that has just spent everything, although it
// asks all the time.
func TestW3_ClockStepsOfAllScripts(t *testing.T) {
	entries, err := files.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries { // none is forgotten
		name := strings.TrimSuffix(e.Name(), ".lua")
		if !slices.Contains([]string{"clock", "prelude", "ping", "heartbeat", "credits"}, name) { // these keep no instant that denies
			require.Contains(t, slices.Collect(maps.Keys(steppedCases)), name)
		}
	}
	client := redistest.Start(t).Client()
	clock := useVirtualClockInAll(t, client)
	for name, limits := range steppedCases {
		for _, step := range steps {
			t.Run(fmt.Sprint(name, " ", step), func(t *testing.T) {
				store, err := New(client, WithTimeout(time.Minute), WithInstances(1), WithDenyCache(0), WithFallback(FallbackDeny),
					WithPrefix(fmt.Sprint(name, step)), WithLogger(slog.New(slog.DiscardHandler)))
				require.NoError(t, err)
				defer func() { require.NoError(t, store.Close()) }()
				clock.sleep(24 * time.Hour)
				for i, s := range limits(t, store, "k0") {
					key := fmt.Sprint("k", i)
					allowed := func() bool {
						lease, err := s.limiter.Acquire(t.Context(), key, 1)
						require.NoError(t, err)
						require.Equal(t, algo.SourceRemote, lease.Source)
						return lease.Allowed
					}
					for range 1000 {
						if !allowed() {
							break
						}
					}
					clock.sleep(step)
					var waited time.Duration
					for ; !allowed() && waited <= s.longest; waited += 50 * time.Millisecond {
						clock.sleep(50 * time.Millisecond)
					}
					require.LessOrEqual(t, waited, s.longest, "limit %d", i)
				}
			})
		}
	}
}

// A learned limit goes on learning after a step, and a rate that was learned stays.
func TestLearnedGoesOnAfterAStep(t *testing.T) {
	client := redistest.Start(t).Client()
	clock := useVirtualClockInAll(t, client)
	for _, step := range steps {
		store, err := New(client, WithTimeout(time.Minute), WithInstances(1), WithPrefix(fmt.Sprint(step)), WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		l, err := store.Learned("partner", algo.PerSecond(10))
		require.NoError(t, err)
		second := func() (calls int) {
			for range 100 {
				clock.sleep(10 * time.Millisecond)
				if lease := algo.Must(forgetful{l}.Acquire(t.Context(), "k", 1)); lease.Allowed {
					l.Answered("k", learn.Answer{Sent: time.Now(), Units: 1, Denied: calls >= 20, Wait: 100 * time.Millisecond})
					calls++
				}
			}
			return calls
		}
		clock.sleep(24 * time.Hour)
		seconds := func(n int) (calls int) {
			for range n {
				calls += second()
			}
			return calls
		}
		seconds(15)
		before := seconds(10)
		clock.sleep(step)
		require.Greater(t, seconds(10), before*2/3, "step %v", step)
		require.NoError(t, store.Close())
	}
}

// An instance that is gone is counted at most twice as long as it promised, after any step.
func TestClockStepsOfHeartbeats(t *testing.T) {
	client := redistest.Start(t).Client()
	clock := useVirtualClockInAll(t, client)
	for _, step := range steps {
		beat := func(id int64) int64 {
			r := remote.NewRequest(heartbeatScript, fmt.Sprint("live", step), remote.Args{0, id, 5000, 0})
			r.Keys = append(r.Keys, fmt.Sprint("names", step), fmt.Sprint("largest", step))
			return runScript(t, client, r)[1]
		}
		require.EqualValues(t, 1, beat(1))
		require.EqualValues(t, 2, beat(2))
		clock.sleep(step)
		beat(2)
		clock.sleep(5 * time.Second)
		beat(2)
		require.EqualValues(t, 1, beat(2), "step %v", step)
	}
}
