package algo_test

import (
	"context"
	"encoding/json"
	"flag"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/algo"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]algo.Spec{
		"100/s":                                                  {Rate: algo.PerSecond(100)},
		" 100/min   burst 20\twait 500ms\n":                      {Rate: algo.PerMinute(100), Burst: 20, MaxWait: 500 * time.Millisecond},
		"token-bucket 5/15m":                                     {Rate: algo.Per(5, 15*time.Minute)},
		"1/day wait forever burst 1":                             {Rate: algo.PerDay(1), Burst: 1, MaxWait: algo.Forever},
		"7/h keys 1000 full deny-new":                            {Rate: algo.PerHour(7), MaxKeys: 1000, OnFull: algo.DenyNew},
		"7/hour full allow-new":                                  {Rate: algo.PerHour(7), OnFull: algo.AllowNew},
		"007/1h full overflow":                                   {Rate: algo.PerHour(7)},
		"token-bucket 5/s":                                       {Rate: algo.PerSecond(5)},
		"leaky-bucket 5/s burst 9":                               {Algorithm: "leaky-bucket", Rate: algo.PerSecond(5), Burst: 9},
		"pacer 5/s slack 2 wait 1s queue 7":                      {Algorithm: "pacer", Rate: algo.PerSecond(5), Slack: 2, MaxWait: time.Second, MaxQueue: 7},
		"nginx 5/s nodelay burst 9":                              {Algorithm: "nginx", Rate: algo.PerSecond(5), Burst: 9, NoDelay: true},
		"nginx 5/s burst 9 delay 3":                              {Algorithm: "nginx", Rate: algo.PerSecond(5), Burst: 9, DelayAfter: 3},
		"smooth-bursty 5/s burst 9 wait 3s":                      {Algorithm: "smooth-bursty", Rate: algo.PerSecond(5), Burst: 9, MaxWait: 3 * time.Second},
		"smooth-warming-up 5/s warmup 3s cold 2.5":               {Algorithm: "smooth-warming-up", Rate: algo.PerSecond(5), Warmup: 3 * time.Second, ColdFactor: 2.5},
		"fixed-window 5/h offset 3m spread":                      {Algorithm: "fixed-window", Rate: algo.PerHour(5), Offset: 3 * time.Minute, Spread: true},
		"fixed-window 5/day aligned 2026-01-31T02:00:00.5+02:00": {Algorithm: "fixed-window", Rate: algo.PerDay(5), AlignedTo: time.Date(2026, 1, 31, 0, 0, 0, 5e8, time.UTC)},
		"sliding-window 5/15m cells 10":                          {Algorithm: "sliding-window", Rate: algo.Per(5, 15*time.Minute), Cells: 10},
		"sliding-log 5/s keys 3":                                 {Algorithm: "sliding-log", Rate: algo.PerSecond(5), MaxKeys: 3},
		"strict 5/s burst 3":                                     {Algorithm: "strict", Rate: algo.PerSecond(5), Burst: 3},
		"1000000000/s burst 9007199254740992":                    {Rate: algo.PerSecond(1e9), Burst: 1 << 53},
		"3/1h30m0.000000001s wait 1.000000007s":                  {Rate: algo.Per(3, 90*time.Minute+1), MaxWait: time.Second + 7},
	} {
		if want.Algorithm == "" {
			want.Algorithm = "token-bucket"
		}
		got, err := algo.Parse(text)
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, got, "%q", text)
		requireRoundTrips(t, got)
	}
}

// requireRoundTrips writes and reads a Spec in every form.
func requireRoundTrips(t require.TestingT, s algo.Spec) {
	again, err := algo.Parse(s.String())
	require.NoError(t, err, "%q", s)
	require.Equal(t, s, again, "%q", s)

	object, err := json.Marshal(s)
	require.NoError(t, err)
	var fromObject, fromText algo.Spec
	require.NoError(t, json.Unmarshal(object, &fromObject), "%s", object)
	require.Equal(t, s, fromObject, "%s", object)
	text, err := json.Marshal(s.String())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &fromText))
	require.Equal(t, s, fromText)

	l, err := s.New()
	require.NoError(t, err)
	want, _ := algo.Describe(l)
	got, _ := algo.Describe(must2(again.New()))
	require.Equal(t, want, got)
}

func must2(l algo.Limiter, err error) algo.Limiter { return algo.Must(l, err) }

// Zero, where it does not mean the default, is kept apart from nothing.
func TestParseZero(t *testing.T) {
	for _, text := range []string{
		"pacer 5/s wait 0", "pacer 5/s queue 0", "smooth-bursty 5/s burst 0", "nginx 5/s burst 0 delay 0", "1/s wait 0",
	} {
		s, err := algo.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, text, s.String())
		requireRoundTrips(t, s)
		require.False(t, s.Given("keys") || s.Given("no such"))
	}
	p, err := algo.Spec{Algorithm: "pacer", Rate: algo.PerSecond(5)}.With(algo.MaxWait(0))
	require.NoError(t, err)
	require.Zero(t, p.MaxWait)
	require.True(t, p.Given("wait"))
	require.False(t, p.Given("queue"))
	l, err := p.New()
	require.NoError(t, err)
	require.True(t, must(t, l, "", 1).Allowed)
	require.False(t, must(t, l, "", 1).Allowed, "no waiting: 0 is not the default")
	p, err = algo.Spec{Algorithm: "pacer", Rate: algo.PerSecond(5)}.With()
	require.NoError(t, err)
	require.False(t, p.Given("wait"))

	for _, text := range []string{"5/s slack 0", "pacer 5/s slack 0", "fixed-window 5/s offset 0s"} {
		if s, err := algo.Parse(text); err == nil {
			require.NotContains(t, s.String(), "0s")
			requireRoundTrips(t, s)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"":                              `"" has no rate`,
		"token-bucket":                  `"token-bucket" has no rate`,
		"sliding 5/s":                   `algorithm is "sliding", want token-bucket, leaky-bucket, pacer, nginx,`,
		"5/s burst":                     `"burst" has no value`,
		"5/s burst 2 burst 3":           `duplicate option "burst"`,
		"5/s burst 0":                   "token bucket: burst is 0, want 1 or more",
		"5/s burst -1":                  `burst is "-1", want a whole number`,
		"5/s burst 1e3":                 `burst is "1e3", want a whole number`,
		"5/s burst 9223372036854775808": `burst is "9223372036854775808", want`,
		"5/s burst 9223372036854775807": "burst is 9223372036854775807: at 5/s it takes longer than",
		"5/s wait 3":                    `wait is "3", want a duration`,
		"5/s wait -3s":                  `wait is "-3s", want a duration`,
		"5/s keys 4294967296":           "max keys is 4294967296, want 1 to 2147483647",
		"5/s full Overflow":             `full is "Overflow", want overflow, deny-new or allow-new`,
		"5/s keys 0":                    "max keys is 0",
		"strict 5/s wait 3s":            "strict: does not take the option MaxWait",
		"5/s cells 3":                   "token bucket: does not take the option Cells",
		"5/s warmup 3s":                 "token bucket: does not take the option Warmup, only Burst, MaxWait, MaxKeys, OnFull",
		"sliding-window 5/s cells 0":    "cells is 0, want 1 to 1024",
		"sliding-window 5/s cells 9223372036854775807": "cells is 9223372036854775807, want 1 to 1024",
		"nginx 5/s nodelay nodelay":                    `duplicate option "nodelay"`,
		"nginx 5/s nodelay delay 3":                    "delay after is 3, and NoDelay is given",
		"smooth-warming-up 5/s warmup 1s cold NaN":     "cold factor is NaN",
		"smooth-warming-up 5/s warmup 1s cold x":       `cold is "x", want a number`,
		"smooth-warming-up 5/s warmup 1s cold 0":       "cold factor is 0",
		"fixed-window 5/s aligned tomorrow":            `aligned is "tomorrow", want a time such as`,
		"5/s colour blue":                              `"colour" is not an option`,
		"5/s/s":                                        `period is "s/s", want a duration such as 500ms, or s, min, h or day`,
		"/s":                                           `count is ""`,
		"5/":                                           `period is ""`,
		"0/s":                                          "rate: count is 0",
		"+5/s":                                         `count is "+5"`,
		"NaN/s":                                        `count is "NaN"`,
		"2000000000/s":                                 "faster than 1e9 per second",
		"1/forever":                                    "rate: period is 2562047h47m16.854775807s, want 8760h0m0s at most",
		"burst 20 100/s":                               `rate: "20", want count/period`,
	} {
		_, err := algo.Parse(text)
		require.ErrorContains(t, err, says, "%q", text)
		require.True(t, strings.HasPrefix(err.Error(), "algo: "), "%v", err)
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]algo.Rate{
		"1/s": algo.PerSecond(1), "1/sec": algo.PerSecond(1), "1/second": algo.PerSecond(1), "1/1s": algo.PerSecond(1),
		"2/m": algo.PerMinute(2), "2/min": algo.PerMinute(2), "2/minute": algo.PerMinute(2),
		"3/h": algo.PerHour(3), "3/hour": algo.PerHour(3), "4/d": algo.PerDay(4), "4/day": algo.PerDay(4),
		"5/15m": algo.Per(5, 15*time.Minute), "6/100ms": algo.Per(6, 100*time.Millisecond), "1/1µs": algo.Per(1, time.Microsecond),
	} {
		r, err := algo.ParseRate(text)
		require.NoError(t, err)
		require.Equal(t, want, r)
		var back algo.Rate
		out, err := r.MarshalText()
		require.NoError(t, err)
		require.NoError(t, back.UnmarshalText(out), "%s", out)
		require.Equal(t, r, back)
	}
	_, err := algo.Rate{}.MarshalText()
	require.ErrorContains(t, err, "rate: count is 0")
	r := algo.PerHour(1)
	require.Error(t, r.UnmarshalText([]byte("x")))
	require.Equal(t, algo.PerHour(1), r, "as it was")
	_, err = algo.ParseRate("100")
	require.ErrorContains(t, err, `rate: "100", want count/period`)
}

func TestSpecJSON(t *testing.T) {
	for text, want := range map[string]string{
		`"100/min burst 20 wait 500ms"`:                                                     "100/min burst 20 wait 500ms",
		`{"rate": "100/min", "burst": 20, "wait": "500ms"}`:                                 "100/min burst 20 wait 500ms",
		` {"algorithm":"token-bucket","rate":"5/s","burst":"7","keys":9,"full":"deny-new"}`: "5/s burst 7 keys 9 full deny-new",
	} {
		var s algo.Spec
		require.NoError(t, s.UnmarshalJSON([]byte(text)), text)
		require.Equal(t, want, s.String())
	}
	for text, says := range map[string]string{
		`7`:                              "7, want a string or an object",
		``:                               "want a string or an object",
		`["5/s"]`:                        "want a string or an object",
		`{"rate":"5/s","brust":7}`:       `"brust" is not an option`,
		`{"rate":"5/s","burst":0}`:       "burst is 0",
		`{"rate":"5/s","burst":1.5}`:     `burst is "1.5"`,
		`{"rate":"5/s","burst":null}`:    "burst is null, want a string, a number or a boolean",
		`{"rate":"5/s","burst":[1]}`:     "burst is [1], want a string, a number or a boolean",
		`{"rate":"5/s","wait":500}`:      `wait is "500", want a duration`,
		`{"burst":7}`:                    "rate: count is 0",
		`{"rate":"5/s"`:                  "unexpected end",
		`"5/s`:                           "unexpected end",
		`"5/s burst x"`:                  `burst is "x"`,
		`{"rate":"5/s","algorithm":"x"}`: `algorithm is "x"`,
	} {
		s := algo.Spec{Rate: algo.PerHour(1)}
		require.ErrorContains(t, s.UnmarshalJSON([]byte(text)), says, text)
		require.Equal(t, algo.Spec{Rate: algo.PerHour(1)}, s, "as it was")
	}

	type file struct {
		Limits map[string]algo.Spec `json:"limits"`
	}
	var f file
	require.NoError(t, json.Unmarshal([]byte(`{"limits": {"login": "5/15m", "api": {"rate": "100/s"}}}`), &f))
	out, err := json.Marshal(f)
	require.NoError(t, err)
	require.JSONEq(t, `{"limits": {"login": {"rate": "5/15m0s"}, "api": {"rate": "100/s"}}}`, string(out))
	_, err = json.Marshal(algo.Spec{})
	require.ErrorContains(t, err, "rate: count is 0")
	_, err = algo.Spec{Rate: algo.PerSecond(1), Burst: -1}.MarshalText()
	require.ErrorContains(t, err, "burst is -1")
}

// The names in JSON are those of the tags and of the text form.
func TestSpecTags(t *testing.T) {
	names := map[string]bool{"algorithm": true, "rate": true}
	for _, text := range []string{
		"pacer 5/s wait 1s queue 3 slack 1 keys 3 full deny-new", "nginx 5/s burst 3 delay 1", "nginx 5/s nodelay",
		"smooth-warming-up 5/s warmup 1s cold 2", "sliding-window 5/s cells 2", "fixed-window 5/s offset 1s spread",
		"fixed-window 5/s aligned 2026-01-31T00:00:00Z",
	} {
		s, err := algo.Parse(text)
		require.NoError(t, err)
		out, err := json.Marshal(s)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, json.Unmarshal(out, &fields))
		for name := range fields {
			names[name] = true
		}
	}
	typ := reflect.TypeFor[algo.Spec]()
	for i := range typ.NumField() {
		if f := typ.Field(i); f.IsExported() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			require.Contains(t, names, name)
			delete(names, name)
		}
	}
	require.Empty(t, names)
}

func TestSpecInAFlag(t *testing.T) {
	set := flag.NewFlagSet("test", flag.ContinueOnError)
	set.SetOutput(new(strings.Builder))
	var s algo.Spec
	set.TextVar(&s, "limit", algo.Spec{Rate: algo.PerSecond(1)}, "the limit")
	require.NoError(t, set.Parse([]string{"-limit", "5/min burst 3"}))
	require.Equal(t, int64(3), s.Burst)
	require.Error(t, set.Parse([]string{"-limit", "fast"}))
}

func TestSpecNew(t *testing.T) {
	l, err := algo.Spec{Rate: algo.PerHour(5)}.New(algo.Burst(2))
	require.NoError(t, err, "the zero algorithm is the default")
	require.IsType(t, new(algo.TokenBucket), l)
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
	s, err = algo.Spec{Rate: algo.PerSecond(400)}.With(algo.MaxKeys(7), algo.OnFull(algo.AllowNew))
	require.NoError(t, err)
	require.Equal(t, algo.Spec{Algorithm: "token-bucket", Rate: algo.PerSecond(400), MaxKeys: 7, OnFull: algo.AllowNew}, s)
	require.False(t, s.Given("burst"))
	require.True(t, s.Given("keys") && s.Given("full"))

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

// Whatever a Spec says, its text and its options say the same.
func TestSpecProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := algo.Spec{
			Algorithm: "token-bucket",
			Rate:      algo.Per(rapid.Int64Range(1, 1000).Draw(t, "count"), time.Duration(rapid.Int64Range(1000, int64(24*time.Hour)).Draw(t, "period"))),
			Burst:     rapid.Int64Range(0, 100).Draw(t, "burst"),
			MaxWait:   time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "wait")),
			MaxKeys:   rapid.Int64Range(0, 1<<20).Draw(t, "keys"),
			OnFull:    algo.FullPolicy(rapid.IntRange(0, 2).Draw(t, "full")),
		}
		requireRoundTrips(t, s)
		opts := []algo.Option{algo.OnFull(s.OnFull)}
		if s.Burst > 0 {
			opts = append(opts, algo.Burst(s.Burst))
		}
		if s.MaxWait > 0 {
			opts = append(opts, algo.MaxWait(s.MaxWait))
		}
		if s.MaxKeys > 0 {
			opts = append(opts, algo.MaxKeys(int(s.MaxKeys)))
		}
		resolved, err := algo.Spec{Algorithm: s.Algorithm, Rate: s.Rate}.With(opts...)
		require.NoError(t, err)
		require.Equal(t, s, resolved)
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"100/min burst 20 wait 500ms", "token-bucket 5/15m", "1/d wait forever keys 3 full deny-new", `{"rate":"5/s","burst":7}`, `"5/s"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := algo.Parse(text); err == nil {
			requireRoundTrips(t, s)
		}
		var s algo.Spec
		if err := json.Unmarshal([]byte(text), &s); err == nil {
			requireRoundTrips(t, s)
		}
	})
}

// A limiter that takes a Spec in use decides on new keys as one that is made
// from that Spec.
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
	w, _ := algo.Describe(want)
	g, _ := algo.Describe(got)
	require.Equal(t, w, g)
}

// What cannot be changed in use is an error, and the limiter keeps its limit.
func TestSpecApplyRefuses(t *testing.T) {
	for _, c := range []struct{ from, to, says string }{
		{"10/s", "strict 10/s", `token bucket: algorithm is "strict" and cannot be changed in use: make a new limiter`},
		{"pacer 10/s", "10/s", `pacer: algorithm is "token-bucket" and cannot`},
		{"10/s", "10/s keys 7", "token bucket: keys is 7 and cannot be changed from the default in use"},
		{"10/s full deny-new", "10/s", "token bucket: full is the default and cannot be changed from deny-new in use"},
		{"smooth-warming-up 10/s warmup 1s", "smooth-warming-up 10/s", "smooth warming up: warmup is the default and cannot be changed from 1s"},
		{"smooth-warming-up 10/s warmup 1s", "smooth-warming-up 10/s warmup 1s cold 2", "smooth warming up: cold is 2 and cannot be changed from the default"},
		{"fixed-window 10/s", "fixed-window 10/s spread", "fixed window: spread is true and cannot be changed"},
		{"fixed-window 10/s", "fixed-window 10/s offset 3s", "fixed window: offset is 3s and cannot be changed"},
		{"fixed-window 10/s", "fixed-window 10/s aligned 2026-01-31T00:00:00Z", "fixed window: aligned is 2026-01-31T00:00:00Z and cannot be changed"},
		{"sliding-window 10/s cells 3", "sliding-window 10/s cells 4", "sliding window: cells is 4 and cannot be changed from 3"},
		{"sliding-log 10/s", "sliding-log 10/s keys 3", "sliding log: keys is 3 and cannot be changed"},
	} {
		l := algo.Must(algo.Must(algo.Parse(c.from)).New())
		was, _ := algo.Describe(l)
		require.ErrorContains(t, algo.Must(algo.Parse(c.to)).Apply(l), "algo: "+c.says)
		is, _ := algo.Describe(l)
		require.Equal(t, was, is)
	}
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(5)))
	require.ErrorContains(t, algo.Spec{}.Apply(l), "rate: count is 0")
	require.ErrorContains(t, algo.Spec{Rate: algo.PerHour(9), Burst: -1}.Apply(l), "burst is -1")
	require.ErrorContains(t, algo.Spec{Rate: algo.PerHour(9), Cells: 1}.Apply(l), "token bucket: does not take the option Cells")
	require.Equal(t, int64(5), peek(t, l, "").Limit)
}

// Wrappers around one limiter apply a Spec to it. What consists of several
// limiters has none.
func TestSpecApplyWrapped(t *testing.T) {
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(5)))
	none := new(algo.KeySet)
	want := int64(5)
	for _, w := range []algo.Limiter{
		l, algo.NewSwitch(l), algo.Shadow(l), algo.AllowList(l, none), algo.DenyList(l, none),
		algo.Must(algo.NewBan(l, algo.PerMinute(3), time.Second, time.Hour)), algo.NewSwitch(algo.Shadow(l)),
	} {
		want++
		require.NoError(t, algo.Spec{Rate: algo.PerHour(want)}.Apply(w), "%T", w)
		require.Equal(t, want, peek(t, l, "").Limit, "%T", w)
	}
	s := algo.Spec{Rate: algo.PerHour(1)}
	for _, w := range []algo.Limiter{
		algo.All(l, l), algo.NewSwitch(algo.All(l, l)), algo.Unlimited(),
		algo.ByKey(func(context.Context, string) algo.Limiter { return l }),
	} {
		require.ErrorContains(t, s.Apply(w), "has no single limit to change")
	}
	require.Equal(t, want, peek(t, l, "").Limit)
}

// A burst that a Spec does not give follows the rate again, whatever SetBurst
// said before.
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
		"100/min burst 20 wait 500ms", "pacer 5/s wait 0 queue 0", "nginx 10/s burst 0 delay 0 keys 7 full deny-new",
		"fixed-window 5/day aligned 2026-01-31T00:00:00Z", "smooth-warming-up 5/s warmup 1s cold 2", "sliding-window 5/s cells 3",
		"nginx 10/s burst 3 nodelay", "fixed-window 5/s offset 1m0s spread", "pacer 3/s slack 2", "5/s",
	} {
		s := algo.Must(algo.Parse(text))
		again, err := algo.Spec{Algorithm: s.Algorithm, Rate: s.Rate}.With(s.Options()...)
		require.NoError(t, err)
		require.Equal(t, s, again)
	}
}
