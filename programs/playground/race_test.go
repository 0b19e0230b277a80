package main

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/algo/telemetry"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-clients" { // see runClients
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// raceFor runs a race in virtual time and returns the counts of the lanes.
func raceFor(t *testing.T, s settings, d time.Duration, then func(*race)) (counts map[string]totals) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, err := newRace(func(telemetry.Event) {})
		require.NoError(t, err)
		require.NoError(t, r.set(s))
		a := audience{run: r.run}
		leave, err := a.enter()
		require.NoError(t, err)
		time.Sleep(d)
		leave()
		counts = map[string]totals{}
		for _, l := range r.lanes {
			c := l.count()
			require.Equal(t, c.Asked, c.AtOnce+c.Delayed+c.Denied+c.Failed, l.Name)
			require.Zero(t, c.Failed, l.Name)
			counts[l.Name] = c
		}
		if then != nil {
			then(r)
		}
	})
	return counts
}

// TestSteady: 30 a second against 20 a second with a burst of 20, for 10 s.
func TestSteady(t *testing.T) {
	counts := raceFor(t, settings{"steady", 30, 1, 20, 20}, 10*time.Second, nil)
	for name, c := range counts {
		require.InDelta(t, 300, c.Asked, 1, name)
	}
	bucket := counts["token-bucket"]
	require.InDelta(t, 220, bucket.AtOnce, 1)
	require.Equal(t, bucket, counts["leaky-bucket"])
	require.InDelta(t, 120, counts["strict"].AtOnce, 2, "half of it at once, then half of the rate")
	for _, name := range []string{"fixed-window", "sliding-cells", "sliding-log"} {
		require.InDelta(t, 200, counts[name].AtOnce, 21, name)
		require.LessOrEqual(t, counts[name].AtOnce, 200+20, name)
	}
	require.LessOrEqual(t, counts["sliding-log"].Second, 20)
	require.LessOrEqual(t, counts["sliding-cells"].Second, 20)
	require.LessOrEqual(t, counts["strict"].Second, 20)
	require.Positive(t, counts["pacer"].Delayed)
	require.LessOrEqual(t, counts["pacer"].Tenth, 2)
	require.LessOrEqual(t, counts["pacer"].Second, 21)
	require.LessOrEqual(t, counts["warming-up"].AtOnce+counts["warming-up"].Delayed, 200)
	require.InDelta(t, 2, counts["in-flight"].InFlight, 1, "30 a second for 50 ms each")
	require.Zero(t, counts["in-flight"].Denied)
}

// TestSame: the same settings give the same counts.
func TestSame(t *testing.T) {
	s := preset("users")
	first := raceFor(t, s, 5*time.Second, nil)
	require.Equal(t, first, raceFor(t, s, 5*time.Second, nil))
	require.Greater(t, first["token-bucket"].Users, 1)
	require.Less(t, first["token-bucket"].Users, s.Users, "the limit is for each user")
}

// TestBurst: a bucket lets its burst through at once, a pacer no two together.
func TestBurst(t *testing.T) {
	counts := raceFor(t, preset("burst"), 25*time.Second, nil)
	require.Greater(t, counts["fixed-window"].Second, 30, "twice the limit across the edge of a window")
	require.LessOrEqual(t, counts["sliding-log"].Second, 20)
	require.GreaterOrEqual(t, counts["token-bucket"].Tenth, 12)
	require.LessOrEqual(t, counts["pacer"].Tenth, 2)
	require.LessOrEqual(t, counts["nginx"].Tenth, 3)
	require.Positive(t, counts["nginx"].Delayed)
	for name, c := range counts {
		require.Positive(t, c.AtOnce, name)
		require.Positive(t, c.Denied, name)
	}
}

// TestSlowHandler: rates do not see that work piles up, a limit in flight does.
func TestSlowHandler(t *testing.T) {
	counts := raceFor(t, preset("slow"), 8*time.Second, nil)
	require.Zero(t, counts["token-bucket"].Denied)
	require.Greater(t, counts["token-bucket"].InFlight, 70)
	require.Equal(t, 20, counts["in-flight"].InFlight)
	require.Positive(t, counts["in-flight"].Denied)
}

func TestRetryStorm(t *testing.T) {
	storm := preset("retry")
	counts := raceFor(t, storm, 6*time.Second, nil)
	bucket := counts["token-bucket"]
	require.Positive(t, bucket.Retries)
	require.LessOrEqual(t, bucket.Retries, bucket.Denied)
	require.Greater(t, bucket.Asked, counts["pacer"].Asked/2)
	calm := raceFor(t, settings{"spike", 30, 1, 20, 10}, 6*time.Second, nil)
	require.Zero(t, calm["token-bucket"].Retries)
}

// TestStandsStill: nothing is sent while no page is open, and afterwards it goes
// on from there.
func TestStandsStill(t *testing.T) {
	raceFor(t, preset("steady"), time.Second, func(r *race) {
		before := r.lanes[0].count()
		time.Sleep(time.Hour)
		require.Equal(t, before, r.lanes[0].count())
		a := audience{run: r.run}
		leave, err := a.enter()
		require.NoError(t, err)
		time.Sleep(time.Second)
		leave()
		require.InDelta(t, before.Asked+30, r.lanes[0].count().Asked, 2)
	})
}

// TestResetFrees: a reset leaves nothing in flight, and the burst is there again.
func TestResetFrees(t *testing.T) {
	raceFor(t, preset("slow"), 6*time.Second, func(r *race) {
		require.Positive(t, r.lanes[0].inFlight)
		r.reset()
		for _, l := range r.lanes {
			require.Zero(t, l.inFlight, l.Name)
			require.Equal(t, totals{}, l.totals, l.Name)
		}
		for _, l := range r.lanes {
			lease, err := l.limiter.Acquire(context.Background(), r.users[0].name, 0)
			require.NoError(t, err)
			require.Positive(t, lease.Remaining, l.Name)
		}
	})
}

func TestSettings(t *testing.T) {
	r, err := newRace(func(telemetry.Event) {})
	require.NoError(t, err)
	for _, l := range loads {
		require.NoError(t, preset(l.Name).check(), l.Name)
		require.NoError(t, r.set(preset(l.Name)), l.Name)
	}
	good := preset("burst")
	for want, change := range map[string]func(*settings){
		"load: unknown name": func(s *settings) { s.Load = "<script>" },
		"rate is 0":          func(s *settings) { s.Rate = 0 },
		"users is 201":       func(s *settings) { s.Users = 201 },
		"limit is -1":        func(s *settings) { s.Limit = -1 },
		"burst is 10000":     func(s *settings) { s.Burst = 10000 },
	} {
		bad := good
		change(&bad)
		require.ErrorContains(t, r.set(bad), want)
		require.NotContains(t, r.set(bad).Error(), "script")
	}
	for _, extreme := range []settings{
		{"burst", mostRate, mostUsers, mostLimit, mostBurst}, {"users", 1, 1, 1, 1}, {"retry", mostRate, 1, 1, mostBurst},
	} {
		require.NoError(t, r.set(extreme))
	}
}

func TestAudienceIsBounded(t *testing.T) {
	ran := make(chan struct{}, 2)
	a := audience{run: func(ctx context.Context) { ran <- struct{}{}; <-ctx.Done() }}
	var leaves []func()
	for range mostWatchers {
		leave, err := a.enter()
		require.NoError(t, err)
		leaves = append(leaves, leave)
	}
	_, err := a.enter()
	require.ErrorIs(t, err, errFull)
	for _, leave := range leaves {
		leave()
		leave() // the second time does nothing
	}
	leave, err := a.enter()
	require.NoError(t, err)
	leave()
	require.Len(t, ran, 2)
}
