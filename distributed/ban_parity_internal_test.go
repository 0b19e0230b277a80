package distributed

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// banStep is a request after a pause, or a reset, and the answer of guard.Ban.
type banStep struct {
	pause time.Duration
	key   string
	n     int64
	reset bool
	want  algo.Decision
}

// All times are minutes, which pass in the scripts at once: no key expires in real time
// while the test runs.
var (
	banDenials       = algo.Per(3, 10*time.Minute)
	firstBan, maxBan = 5 * time.Minute, 40 * time.Minute
)

// randomBans is n steps.
func randomBans(rnd *rand.Rand, n int) (steps []banStep) {
	for range n {
		s := banStep{key: []string{"a", "b"}[rnd.IntN(2)], n: rnd.Int64N(3), reset: rnd.IntN(40) == 0}
		if rnd.IntN(4) == 0 {
			s.pause = time.Duration(rnd.IntN(1<<rnd.IntN(8))) * time.Minute
		}
		if rnd.IntN(20) == 0 {
			s.n = 99 // never
		}
		steps = append(steps, s)
	}
	return steps
}

// localBans runs the steps on guard.Ban in virtual time.
func localBans(t *testing.T, spec algo.Spec, steps []banStep) []banStep {
	synctest.Test(t, func(t *testing.T) {
		l, err := spec.New()
		require.NoError(t, err)
		b := algo.Must(guard.NewBan(l, banDenials, firstBan, maxBan))
		for i, s := range steps {
			time.Sleep(s.pause)
			if s.reset {
				b.Reset(s.key)
			}
			lease, err := b.Acquire(t.Context(), s.key, s.n)
			require.NoError(t, err)
			steps[i].want = lease.Decision
		}
	})
	return steps
}

// TestL2_BanIsForgottenOnce: a denial while a level is remembered makes it no lower.
func TestL2_BanIsForgottenOnce(t *testing.T) {
	spec := algo.Must(algo.Spec{Algorithm: "sliding-log", Rate: algo.PerHour(1)}.With())
	deny := banStep{key: "a", n: 1}
	after := func(d time.Duration) banStep { return banStep{key: "a", n: 1, pause: d} }
	steps := []banStep{deny, // admitted
		deny, deny, deny, after(firstBan), deny, deny, // twice banned, for 5 and 10 minutes
		after(2 * firstBan), // remembered for 15 more
		after(11 * time.Minute), after(time.Minute), after(time.Minute), deny}
	got := remoteBans(t, spec, localBans(t, spec, steps))
	require.Equal(t, 2*firstBan, got[len(got)-1].RetryAfter)
}

// TestL2_BansOnRedis: bans on Redis give the answers of guard.Ban, for every algorithm.
func TestL2_BansOnRedis(t *testing.T) {
	for name := range kinds {
		t.Run(name, func(t *testing.T) {
			spec := algo.Spec{Algorithm: name, Rate: algo.PerHour(2)}
			if name == "smooth-warming-up" {
				spec.Warmup = 2 * time.Hour // all prices are whole seconds
			}
			spec = algo.Must(spec.With())
			bans, admitted := 0, 0
			for seed := range cases.Count(3, 60) {
				got := remoteBans(t, spec, localBans(t, spec, randomBans(rand.New(rand.NewPCG(uint64(seed), 7)), 400)))
				for _, d := range got {
					if d.Reason == algo.Banned {
						bans++
					} else if d.Allowed {
						admitted++
					}
				}
			}
			t.Logf("%d banned, %d admitted, all as by guard.Ban", bans, admitted)
			require.Greater(t, bans, 20)
			require.Greater(t, admitted, 20)
		})
	}
}

// roundedUp gives d the spans of want where it has more by the rounding of prices to microseconds: in one process
// they are in 1/64 ns.
func roundedUp(d, want algo.Decision) algo.Decision {
	of := []*time.Duration{&want.Delay, &want.RetryAfter, &want.NextAfter, &want.ResetAfter}
	for i, span := range []*time.Duration{&d.Delay, &d.RetryAfter, &d.NextAfter, &d.ResetAfter} {
		if more := *span - *of[i]; more.Abs() < time.Millisecond {
			*span = *of[i]
		}
	}
	return d
}

// remoteBans repeats the steps on Redis and compares the answers.
func remoteBans(t *testing.T, spec algo.Spec, steps []banStep) (all []algo.Decision) {
	client := redistest.Start(t).Client()
	store, err := New(client, WithDenyCache(0), WithInstances(1), WithTimeout(time.Minute))
	require.NoError(t, err)
	defer store.Close()
	l := algo.Must(store.Limiter("a", spec))
	b := algo.Must(NewBan(l, banDenials, firstBan, maxBan))
	plain := banScript(l.load().script())
	ticking := strings.Replace(plain.Source(), "redis.pcall('TIME')", "redis.call('MGET', 'sec', 'usec')", 1)
	require.False(t, ticking == plain.Source())
	banScripts.Store(l.load().script(), remote.NewScript(plain.Name, text(ticking), plain.Args, plain.Replies))
	defer banScripts.Store(l.load().script(), plain)

	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, s := range steps {
		now = now.Add(s.pause)
		require.NoError(t, client.MSet(t.Context(), "sec", now.Unix(), "usec", 0).Err())
		if s.reset {
			require.NoError(t, b.Reset(t.Context(), s.key))
		}
		lease, err := b.Acquire(t.Context(), s.key, s.n)
		require.NoError(t, err)
		require.Equal(t, algo.SourceRemote, lease.Source)
		lease.Source = s.want.Source
		if spec.Algorithm == "smooth-warming-up" {
			lease.Decision = roundedUp(lease.Decision, s.want)
		}
		require.Equal(t, s.want, lease.Decision, "step %d: %+v", i, s)
		all = append(all, lease.Decision)
	}
	return all
}
