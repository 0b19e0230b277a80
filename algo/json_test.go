package algo_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func TestSpecJSON(t *testing.T) {
	for text, want := range map[string]string{
		`"100/min burst 20 wait 500ms"`:                                                   "100/min burst 20 wait 500ms",
		`{"rate": "100/min", "burst": 20, "wait": "500ms"}`:                               "100/min burst 20 wait 500ms",
		` {"algorithm":"token-bucket","rate":"5/s","burst":"7","keys":9,"deny-new":true}`: "5/s burst 7 keys 9 deny-new",
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

// JSON, the struct tags and the text form have the same names.
func TestSpecTags(t *testing.T) {
	names := map[string]bool{"algorithm": true, "rate": true}
	for _, text := range []string{
		"pacer 5/s wait 1s queue 3 slack 1 keys 3 deny-new", "nginx 5/s burst 3 delay 1", "nginx 5/s nodelay",
		"smooth-warming-up 5/s warmup 1s cold 2", "sliding-window 5/s cells 2", "fixed-window 5/s offset 1s spread",
		"fixed-window 5/s aligned 2026-01-31T00:00:00Z", "fixed-window 5/month zone UTC start 3",
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
			require.Contains(t, names, name, "add a text with this option to the list above")
			delete(names, name)
		}
	}
	require.Empty(t, names)
}

func ExampleSpec_UnmarshalJSON() {
	var limits map[string]algo.Spec
	err := json.Unmarshal([]byte(`{
		"api":   "100/s burst 200",
		"login": {"rate": "5/15m", "keys": 100000, "deny-new": true}
	}`), &limits)
	fmt.Println(limits["api"], err)
	fmt.Println(limits["login"], err)
	// Output:
	// 100/s burst 200 <nil>
	// 5/15m0s keys 100000 deny-new <nil>
}
