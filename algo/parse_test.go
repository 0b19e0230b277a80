package algo_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"
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
		"7/h keys 1000 deny-new":                                 {Rate: algo.PerHour(7), MaxKeys: 1000, DenyNew: true},
		"007/1h":                                                 {Rate: algo.PerHour(7)},
		"token-bucket 5/s":                                       {Rate: algo.PerSecond(5)},
		"leaky-bucket 5/s burst 9":                               {Algorithm: "leaky-bucket", Rate: algo.PerSecond(5), Burst: 9},
		"pacer 5/s slack 2 wait 1s queue 7":                      {Algorithm: "pacer", Rate: algo.PerSecond(5), Slack: 2, MaxWait: time.Second, MaxQueue: 7},
		"nginx 5/s nodelay burst 9":                              {Algorithm: "nginx", Rate: algo.PerSecond(5), Burst: 9, NoDelay: true},
		"nginx 5/s burst 9 delay 3":                              {Algorithm: "nginx", Rate: algo.PerSecond(5), Burst: 9, DelayAfter: 3},
		"smooth-bursty 5/s burst 9 wait 3s":                      {Algorithm: "smooth-bursty", Rate: algo.PerSecond(5), Burst: 9, MaxWait: 3 * time.Second},
		"smooth-warming-up 5/s warmup 3s cold 2.5":               {Algorithm: "smooth-warming-up", Rate: algo.PerSecond(5), Warmup: 3 * time.Second, ColdFactor: 2.5},
		"fixed-window 5/h offset 3m spread":                      {Algorithm: "fixed-window", Rate: algo.PerHour(5), Offset: 3 * time.Minute, Spread: true},
		"fixed-window 5/day aligned 2026-01-31T02:00:00.5+02:00": {Algorithm: "fixed-window", Rate: algo.PerDay(5), AlignedTo: time.Date(2026, 1, 31, 0, 0, 0, 5e8, time.UTC)},
		"fixed-window 5/day zone UTC":                            {Algorithm: "fixed-window", Rate: algo.PerDay(5), Zone: "UTC"},
		"fixed-window 5/week zone America/Argentina/Ushuaia":     {Algorithm: "fixed-window", Rate: algo.Per(5, algo.Week), Zone: "America/Argentina/Ushuaia"},
		"fixed-window 5/month start 31 zone Europe/Berlin":       {Algorithm: "fixed-window", Rate: algo.Per(5, algo.Month), Zone: "Europe/Berlin", StartDay: 31},
		"fixed-window 5/quarter zone Etc/GMT+12 keys 9":          {Algorithm: "fixed-window", Rate: algo.Per(5, algo.Quarter), Zone: "Etc/GMT+12", MaxKeys: 9},
		"5/quarter":                             {Rate: algo.Per(5, algo.Quarter)},
		"sliding-window 5/15m cells 10":         {Algorithm: "sliding-window", Rate: algo.Per(5, 15*time.Minute), Cells: 10},
		"sliding-log 5/s keys 3":                {Algorithm: "sliding-log", Rate: algo.PerSecond(5), MaxKeys: 3},
		"strict 5/s burst 3":                    {Algorithm: "strict", Rate: algo.PerSecond(5), Burst: 3},
		"1000000000/s burst 9007199254740992":   {Rate: algo.PerSecond(1e9), Burst: 1 << 53},
		"3/1h30m0.000000001s wait 1.000000007s": {Rate: algo.Per(3, 90*time.Minute+1), MaxWait: time.Second + 7},
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
	want := algo.About(l)
	got := algo.About(must2(again.New()))
	require.Equal(t, want, got)
}

func must2(l algo.Limiter, err error) algo.Limiter { return algo.Must(l, err) }

// An option given as zero differs from one not given, where zero is not the
// default.
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
		"5/s full evict":                `"full" is not an option`,
		"5/s keys 0":                    "max keys is 0",
		"strict 5/s wait 3s":            "strict: does not take the option MaxWait",
		"5/s cells 3":                   "token bucket: does not take the option Cells",
		"5/s warmup 3s":                 "token bucket: does not take the option Warmup, only Burst, MaxWait, MaxKeys, DenyNew",
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
		"1/forever":                                    "rate: period is 2562047h47m16.854775807s, want at most 8760h0m0s",
		"burst 20 100/s":                               `rate: "20", want count/period`,
	} {
		_, err := algo.Parse(text)
		require.ErrorContains(t, err, says, "%q", text)
		require.True(t, strings.HasPrefix(err.Error(), "algo: "), "%v", err)
	}
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

// The text and the options of a Spec make the same Spec.
func TestSpecProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := algo.Spec{
			Algorithm: "token-bucket",
			Rate:      algo.Per(rapid.Int64Range(1, 1000).Draw(t, "count"), time.Duration(rapid.Int64Range(1000, int64(24*time.Hour)).Draw(t, "period"))),
			Burst:     rapid.Int64Range(0, 100).Draw(t, "burst"),
			MaxWait:   time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "wait")),
			MaxKeys:   rapid.Int64Range(0, 1<<20).Draw(t, "keys"),
			DenyNew:   rapid.Bool().Draw(t, "deny-new"),
		}
		requireRoundTrips(t, s)
		var opts []algo.Option
		if s.DenyNew {
			opts = append(opts, algo.DenyNew())
		}
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

func FuzzS3_Parse(f *testing.F) {
	for _, s := range []string{"100/min burst 20 wait 500ms", "token-bucket 5/15m", "1/d wait forever keys 3 deny-new", `{"rate":"5/s","burst":7}`, `"5/s"`} {
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

// Limits that live in files.
func ExampleParse() {
	spec, err := algo.Parse("100/min burst 20 wait 500ms")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(spec.Rate.Count, spec.Rate.Period, spec.Burst, spec.MaxWait)

	limiter, err := spec.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	lease, _ := limiter.Acquire(context.Background(), "alice", 1)
	fmt.Println(lease.Allowed, lease.Remaining, "of", lease.Limit)
	lease.Release(algo.Succeeded)

	_, err = algo.Parse("100/min burst many")
	fmt.Println(err)
	// Output:
	// 100 1m0s 20 500ms
	// true 19 of 20
	// algo: spec: burst is "many", want a whole number
}

// A configuration has nginx's rates, and words for no limit.
func ExampleParse_unlimited() {
	limiterOf := func(text string) (algo.Limiter, error) {
		if text == "off" || text == "unlimited" {
			return algo.Unlimited(), nil
		}
		spec, err := algo.Parse(text)
		if err != nil {
			return nil, err
		}
		return spec.New()
	}
	for _, text := range []string{"2r/s", "30r/m burst 5", "off"} {
		l, err := limiterOf(text)
		fmt.Println(algo.About(l), err)
	}
	_, err := algo.Parse("off")
	fmt.Println(err)
	// Output:
	// 2-per-second <nil>
	// 30-per-minute-burst-5 <nil>
	// default <nil>
	// algo: spec: "off" has no rate; for no limit use algo.Unlimited
}

// limits.json holds limits that change without a new build.
func ExampleSpec_UnmarshalText() {
	var limits map[string]algo.Spec
	file := `{"login": "5/min burst 2", "search": {"rate": "100/s"}}`
	if err := json.Unmarshal([]byte(file), &limits); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(limits["login"], "-", limits["search"])

	var flag algo.Spec // for flag.TextVar
	fmt.Println(flag.UnmarshalText([]byte("10/h")), flag)
	// Output:
	// 5/min burst 2 - 100/s
	// <nil> 10/h
}
