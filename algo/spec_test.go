package algo_test

import (
	"encoding/json"
	"flag"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/algo"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]algo.Spec{
		"100/s":                                 {Rate: algo.PerSecond(100)},
		" 100/min   burst 20\twait 500ms\n":     {Rate: algo.PerMinute(100), Burst: 20, MaxWait: 500 * time.Millisecond},
		"token-bucket 5/15m":                    {Rate: algo.Per(5, 15*time.Minute)},
		"1/day wait forever burst 1":            {Rate: algo.PerDay(1), Burst: 1, MaxWait: algo.Forever},
		"7/h keys 1000 full deny-new":           {Rate: algo.PerHour(7), MaxKeys: 1000, OnFull: algo.DenyNew},
		"7/hour full allow-new":                 {Rate: algo.PerHour(7), OnFull: algo.AllowNew},
		"007/1h full overflow":                  {Rate: algo.PerHour(7)},
		"1000000000/s burst 9007199254740992":   {Rate: algo.PerSecond(1e9), Burst: 1 << 53},
		"3/1h30m0.000000001s wait 1.000000007s": {Rate: algo.Per(3, 90*time.Minute+1), MaxWait: time.Second + 7},
	} {
		want.Algorithm = "token-bucket"
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
	require.Equal(t, s.Quota(), peek(t, l, "k").Limit)
}

func TestParseRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"":                              `"" has no rate`,
		"token-bucket":                  `"token-bucket" has no rate`,
		"sliding 5/s":                   `algorithm is "sliding", want token-bucket`,
		"5/s burst":                     `"burst" has no value`,
		"5/s burst 2 burst 3":           "burst stands twice",
		"5/s burst 0":                   `burst is "0", want a whole number above 0`,
		"5/s burst -1":                  `burst is "-1", want a whole number`,
		"5/s burst 1e3":                 `burst is "1e3", want a whole number`,
		"5/s burst 9223372036854775808": `burst is "9223372036854775808", want`,
		"5/s burst 9223372036854775807": "burst is 9223372036854775807: at 5/s it takes longer than",
		"5/s wait 3":                    `wait is "3", want a duration above 0`,
		"5/s wait -3s":                  `wait is "-3s", want a duration above 0`,
		"5/s keys 4294967296":           `keys is "4294967296", want 2147483647 at most`,
		"5/s full Overflow":             `full is "Overflow", want overflow, deny-new or allow-new`,
		"5/s colour blue":               `"colour" is not an option`,
		"5/s/s":                         `period is "s/s", want a duration`,
		"/s":                            `count is ""`,
		"5/":                            `period is ""`,
		"0/s":                           `count is "0"`,
		"+5/s":                          `count is "+5"`,
		"NaN/s":                         `count is "NaN"`,
		"2000000000/s":                  "faster than 1e9 per second",
		"1/forever":                     "rate: period is 2562047h47m16.854775807s, want 8760h0m0s at most",
		"burst 20 100/s":                `rate: "20", want count/period`,
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
		`{"rate":"5/s","burst":0}`:       `burst is "0"`,
		`{"rate":"5/s","burst":1.5}`:     `burst is "1.5"`,
		`{"rate":"5/s","burst":null}`:    "burst is null, want a string or a number",
		`{"rate":"5/s","burst":[1]}`:     "burst is [1], want a string or a number",
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
	s, err := algo.Parse("5/s burst 2 wait 1s keys 3 full deny-new")
	require.NoError(t, err)
	out, err := json.Marshal(s)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(out, &fields))
	fields["algorithm"] = "left out where it is the default"
	typ := reflect.TypeFor[algo.Spec]()
	require.Len(t, fields, typ.NumField())
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		require.Contains(t, fields, name)
	}
}

func TestSpecInAFlag(t *testing.T) {
	set := flag.NewFlagSet("test", flag.ContinueOnError)
	set.SetOutput(new(strings.Builder))
	var s algo.Spec
	set.TextVar(&s, "limit", algo.Spec{Rate: algo.PerSecond(1)}, "the limit")
	require.NoError(t, set.Parse([]string{"-limit", "5/min burst 3"}))
	require.Equal(t, int64(3), s.Quota())
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

func TestResolve(t *testing.T) {
	s, err := algo.Resolve("token-bucket", algo.PerSecond(400), algo.Burst(500), algo.MaxWait(time.Second))
	require.NoError(t, err)
	require.Equal(t, algo.Spec{Algorithm: "token-bucket", Rate: algo.PerSecond(400), Burst: 500, MaxWait: time.Second}, s)
	s, err = algo.Resolve("", algo.PerSecond(400), algo.MaxKeys(7), algo.OnFull(algo.AllowNew))
	require.NoError(t, err)
	require.Equal(t, algo.Spec{Algorithm: "token-bucket", Rate: algo.PerSecond(400), MaxKeys: 7, OnFull: algo.AllowNew}, s)
	require.Equal(t, int64(400), s.Quota())

	for says, try := range map[string]func() (algo.Spec, error){
		"rate: count is 0":   func() (algo.Spec, error) { return algo.Resolve("", algo.Rate{}) },
		"burst is 0":         func() (algo.Spec, error) { return algo.Resolve("", algo.PerHour(1), algo.Burst(0)) },
		"max wait is -1ns":   func() (algo.Spec, error) { return algo.Resolve("", algo.PerHour(1), algo.MaxWait(-1)) },
		"max keys is 0":      func() (algo.Spec, error) { return algo.Resolve("", algo.PerHour(1), algo.MaxKeys(0)) },
		"the zero Option":    func() (algo.Spec, error) { return algo.Resolve("", algo.PerHour(1), algo.Option{}) },
		`algorithm is "lru"`: func() (algo.Spec, error) { return algo.Resolve("lru", algo.PerHour(1)) },
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
			MaxKeys:   rapid.IntRange(0, 1<<20).Draw(t, "keys"),
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
			opts = append(opts, algo.MaxKeys(s.MaxKeys))
		}
		resolved, err := algo.Resolve(s.Algorithm, s.Rate, opts...)
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
