package algo_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
)

func TestSpecNew(t *testing.T) {
	l, err := algo.Spec{Rate: algo.PerHour(5)}.New(algo.Burst(2))
	require.NoError(t, err, "the zero algorithm is the default")
	require.Equal(t, "token-bucket", l.Spec().Algorithm)
	require.Equal(t, int64(2), peek(t, l, "").Limit, "extra options come last")
	l, err = algo.Spec{}.New()
	require.Error(t, err)
	require.Nil(t, l)
	_, err = algo.Spec{Rate: algo.PerHour(5), Algorithm: "x"}.New()
	require.ErrorContains(t, err, `algorithm is "x"`)
	require.Equal(t, "5/h", algo.Spec{Rate: algo.PerHour(5)}.String())
}

func TestSpecWith(t *testing.T) {
	s, err := algo.Spec{Algorithm: "token-bucket", Rate: algo.PerSecond(400)}.With(algo.Burst(500), algo.MaxWait(time.Second))
	require.NoError(t, err)
	require.Equal(t, algo.Spec{Algorithm: "token-bucket", Rate: algo.PerSecond(400), Burst: 500, MaxWait: time.Second}, s)
	s, err = algo.Spec{Rate: algo.PerSecond(400)}.With(algo.MaxKeys(7), algo.DenyNew())
	require.NoError(t, err)
	require.Equal(t, algo.Spec{Algorithm: "token-bucket", Rate: algo.PerSecond(400), MaxKeys: 7, DenyNew: true}, s)
	require.False(t, s.Given("burst"))
	require.True(t, s.Given("keys") && s.Given("deny-new"))

	at := time.Now().Add(time.Hour)
	for _, c := range []struct {
		name string
		opts []algo.Option
		want string
	}{
		{"leaky-bucket", []algo.Option{algo.Burst(3)}, "leaky-bucket 9/h burst 3"},
		{"pacer", []algo.Option{algo.Slack(3), algo.MaxQueue(0)}, "pacer 9/h queue 0 slack 3"},
		{"nginx", []algo.Option{algo.Burst(3), algo.DelayAfter(0)}, "nginx 9/h burst 3 delay 0"},
		{"nginx", []algo.Option{algo.NoDelay()}, "nginx 9/h nodelay"},
		{"smooth-bursty", []algo.Option{algo.Burst(0)}, "smooth-bursty 9/h burst 0"},
		{"smooth-warming-up", []algo.Option{algo.ColdFactor(2)}, "smooth-warming-up 9/h cold 2"},
		{"fixed-window", []algo.Option{algo.Offset(time.Minute), algo.Spread()}, "fixed-window 9/h offset 1m0s spread"},
		{"fixed-window", []algo.Option{algo.AlignedTo(at)}, "fixed-window 9/h aligned " + at.UTC().Format(time.RFC3339Nano)},
		{"sliding-window", []algo.Option{algo.Cells(4)}, "sliding-window 9/h cells 4"},
		{"sliding-log", nil, "sliding-log 9/h"},
		{"strict", []algo.Option{algo.Burst(2)}, "strict 9/h burst 2"},
	} {
		s, err := algo.Spec{Algorithm: c.name, Rate: algo.PerHour(9)}.With(c.opts...)
		require.NoError(t, err)
		require.Equal(t, c.want, s.String())
		requireRoundTrips(t, s)
	}

	for says, try := range map[string]func() (algo.Spec, error){
		"rate: count is 0":   func() (algo.Spec, error) { return algo.Spec{Rate: algo.Rate{}}.With() },
		"burst is 0":         func() (algo.Spec, error) { return algo.Spec{Rate: algo.PerHour(1)}.With(algo.Burst(0)) },
		"max wait is -1ns":   func() (algo.Spec, error) { return algo.Spec{Rate: algo.PerHour(1)}.With(algo.MaxWait(-1)) },
		"max keys is 0":      func() (algo.Spec, error) { return algo.Spec{Rate: algo.PerHour(1)}.With(algo.MaxKeys(0)) },
		"the zero Option":    func() (algo.Spec, error) { return algo.Spec{Rate: algo.PerHour(1)}.With(algo.Option{}) },
		`algorithm is "lru"`: func() (algo.Spec, error) { return algo.Spec{Algorithm: "lru", Rate: algo.PerHour(1)}.With() },
	} {
		_, err := try()
		require.ErrorContains(t, err, says)
	}
}

// A limiter that a Spec is applied to decides on new keys like a new limiter of
// that Spec.
func TestSpecApply(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"10/s", "20/s"},
		{"10/s burst 5", "10/h burst 9 wait 1m"},
		{"10/s burst 5 wait 1s", "3/s"},
		{"100000000/s burst 1000000000", "1/h burst 2"},
		{"1/h burst 2", "100000000/s burst 1000000000"},
		{"leaky-bucket 10/s", "leaky-bucket 20/s burst 3"},
		{"pacer 10/s", "pacer 5/s slack 2 wait 1s queue 4"},
		{"pacer 5/s slack 2 wait 1s queue 4", "pacer 10/s queue 0"},
		{"nginx 10/s burst 3 delay 1", "nginx 5/s burst 4 nodelay"},
		{"nginx 5/s burst 4 nodelay", "nginx 5/s burst 2"},
		{"smooth-bursty 10/s burst 0", "smooth-bursty 5/s burst 4 wait 3s"},
		{"smooth-bursty 10/s burst 7", "smooth-bursty 10/s"},
		{"smooth-warming-up 10/s warmup 3s", "smooth-warming-up 5/s warmup 3s wait 4s"},
		{"smooth-warming-up 10/s", "smooth-warming-up 5/s wait 4s"},
		{"fixed-window 10/s offset 300ms", "fixed-window 4/s offset 300ms"},
		{"sliding-window 10/s", "sliding-window 4/s"},
		{"sliding-window 10/s cells 4", "sliding-window 4/s cells 4"},
		{"sliding-log 10/s", "sliding-log 4/s"},
		{"strict 10/s", "strict 8/s burst 2"},
	} {
		t.Run(c.from+" to "+c.to, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from, to := algo.Must(algo.Parse(c.from)), algo.Must(algo.Parse(c.to))
				changed, fresh := algo.Must(from.New()), algo.Must(to.New())
				require.NoError(t, to.Apply(changed))
				time.Sleep(2 * time.Second) // a SmoothBursty starts empty, for the burst of its making
				requireAlike(t, fresh, changed)
				require.NoError(t, from.Apply(changed))
				require.NoError(t, to.Apply(changed), "and back")
				requireAlike(t, fresh, changed)
			})
		})
	}
}

// requireAlike compares the decisions of two limiters on a key that is new to
// both.
func requireAlike(t *testing.T, want, got algo.Limiter) {
	for _, key := range []string{"", "k"} {
		for i := range int64(12) {
			require.Equal(t, must(t, want, key, i%3).Decision, must(t, got, key, i%3).Decision, "%q: decision %d", key, i)
			time.Sleep(time.Duration(i%2) * 150 * time.Millisecond)
		}
	}
	w := algo.About(want)
	g := algo.About(got)
	require.Equal(t, w, g)
}

// A change that is not possible in use is an error, and the limiter keeps its
// limit.
func TestSpecApplyRefuses(t *testing.T) {
	for _, c := range []struct{ from, to, says string }{
		{"10/s", "strict 10/s", `token bucket: algorithm is "strict" and cannot be changed in use: make a new limiter`},
		{"pacer 10/s", "10/s", `pacer: algorithm is "token-bucket" and cannot`},
		{"10/s", "10/s keys 7", "token bucket: keys is 7 and cannot be changed from the default in use"},
		{"10/s deny-new", "10/s", "token bucket: deny-new is the default and cannot be changed from true in use"},
		{"smooth-warming-up 10/s warmup 1s", "smooth-warming-up 10/s", "smooth warming up: warmup is the default and cannot be changed from 1s"},
		{"smooth-warming-up 10/s warmup 1s", "smooth-warming-up 10/s warmup 1s cold 2", "smooth warming up: cold is 2 and cannot be changed from the default"},
		{"fixed-window 10/s", "fixed-window 10/s spread", "fixed window: spread is true and cannot be changed"},
		{"fixed-window 10/s", "fixed-window 10/s offset 3s", "fixed window: offset is 3s and cannot be changed"},
		{"fixed-window 10/s", "fixed-window 10/s aligned 2026-01-31T00:00:00Z", "fixed window: aligned is 2026-01-31T00:00:00Z and cannot be changed"},
		{"sliding-window 10/s cells 3", "sliding-window 10/s cells 4", "sliding window: cells is 4 and cannot be changed from 3"},
		{"sliding-log 10/s", "sliding-log 10/s keys 3", "sliding log: keys is 3 and cannot be changed"},
	} {
		l := algo.Must(algo.Must(algo.Parse(c.from)).New())
		was := algo.About(l)
		require.ErrorContains(t, algo.Must(algo.Parse(c.to)).Apply(l), "algo: "+c.says)
		is := algo.About(l)
		require.Equal(t, was, is)
	}
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(5)))
	require.ErrorContains(t, algo.Spec{}.Apply(l), "rate: count is 0")
	require.ErrorContains(t, algo.Spec{Rate: algo.PerHour(9), Burst: -1}.Apply(l), "burst is -1")
	require.ErrorContains(t, algo.Spec{Rate: algo.PerHour(9), Cells: 1}.Apply(l), "token bucket: does not take the option Cells")
	require.Equal(t, int64(5), peek(t, l, "").Limit)
}

// Wrappers apply a Spec to their limiter. Compositions have no single limit.
func TestSpecApplyWrapped(t *testing.T) {
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(5)))
	want := int64(5)
	for _, w := range []algo.Limiter{
		l, algo.NewSwitch(l), algo.Shadow(l),
		algo.Must(guard.NewBan(l, algo.PerMinute(3), time.Second, time.Hour)), algo.NewSwitch(algo.Shadow(l)),
	} {
		want++
		require.NoError(t, algo.Spec{Rate: algo.PerHour(want)}.Apply(w), "%T", w)
		require.Equal(t, want, peek(t, l, "").Limit, "%T", w)
	}
	s := algo.Spec{Rate: algo.PerHour(1)}
	for _, w := range []algo.Limiter{
		algo.All(l, bucket(algo.PerHour(1))), algo.NewSwitch(algo.All(l, bucket(algo.PerHour(1)))), algo.Unlimited(),
		algo.ByKey(func(context.Context, string) algo.Limiter { return l }),
	} {
		require.ErrorContains(t, s.Apply(w), "apply the Spec to")
	}
	require.Equal(t, want, peek(t, l, "").Limit)
}

// Without a burst in the Spec the burst follows the rate again, also after
// SetBurst.
func TestSpecApplyAfterSetBurst(t *testing.T) {
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(5)))
	require.NoError(t, l.SetBurst(3))
	require.NoError(t, algo.Spec{Rate: algo.PerHour(7)}.Apply(l))
	require.Equal(t, int64(7), peek(t, l, "").Limit)
	require.NoError(t, l.SetRate(algo.PerHour(9)))
	require.Equal(t, int64(9), peek(t, l, "").Limit)
	require.ErrorContains(t, l.SetBurst(0), "burst is 0")
	require.NoError(t, l.SetRate(algo.PerHour(6)))
	require.Equal(t, int64(6), peek(t, l, "").Limit)
}

// Options makes the same limit from a Spec for constructors that take options.
func TestSpecOptions(t *testing.T) {
	for _, text := range []string{
		"100/min burst 20 wait 500ms", "pacer 5/s wait 0 queue 0", "nginx 10/s burst 0 delay 0 keys 7 deny-new",
		"fixed-window 5/day aligned 2026-01-31T00:00:00Z", "smooth-warming-up 5/s warmup 1s cold 2", "sliding-window 5/s cells 3",
		"nginx 10/s burst 3 nodelay", "fixed-window 5/s offset 1m0s spread", "pacer 3/s slack 2", "5/s",
	} {
		s := algo.Must(algo.Parse(text))
		again, err := algo.Spec{Algorithm: s.Algorithm, Rate: s.Rate}.With(s.Options()...)
		require.NoError(t, err)
		require.Equal(t, s, again)
	}
}

// A package that makes limiters of its own reads a rate and options.
func ExampleSpec_With() {
	spec, err := algo.Spec{Rate: algo.PerSecond(400)}.With(algo.MaxWait(time.Second))
	fmt.Println(spec.Rate, spec.MaxWait, spec.Given("burst"), err)
	_, err = algo.Spec{Rate: algo.PerSecond(400)}.With(algo.Burst(-1))
	fmt.Println(err)
	// Output:
	// 400/s 1s false <nil>
	// algo: token bucket: burst is -1, want 1 or more
}

// A configuration is read again while its limits are in use.
func ExampleSpec_Apply() {
	limiter := algo.NewSwitch(algo.Must(algo.Must(algo.Parse("10/h burst 2")).New()))
	err := algo.Must(algo.Parse("10/h burst 5 wait 1m")).Apply(limiter)
	limit := algo.About(limiter)
	fmt.Println(limit, err)
	fmt.Println(algo.Must(algo.Parse("sliding-log 10/h")).Apply(limiter))
	// Output:
	// 10-per-hour-burst-5 <nil>
	// algo: token bucket: algorithm is "sliding-log" and cannot be changed in use: make a new limiter
}

// Options passes a limit on to a constructor that takes a rate and options.
func ExampleSpec_Options() {
	spec := algo.Must(algo.Parse("pacer 10/s slack 2 wait 1s"))
	pacer, err := algo.NewPacer(spec.Rate, spec.Options()...)
	limit := algo.About(pacer)
	fmt.Println(spec.Options(), limit.Quota, err)
	// Output: [MaxWait Slack] 3 <nil>
}

func ExampleRateLimiter_SetSpec() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
	err := limiter.SetSpec(algo.Spec{Rate: algo.PerHour(20), Burst: 5, MaxWait: time.Minute})
	limit := limiter.About()
	fmt.Println(limit.Quota, err)
	// Output: 5 <nil>
}
