package keyfunc_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/keyfunc"
)

// constant is a user's own key function.
func constant(s string) keyfunc.HTTP {
	return func(*http.Request) (string, error) { return s, nil }
}

// joined is the joined key of parts.
func joined(t require.TestingT, parts ...string) string {
	var fs []keyfunc.HTTP
	for _, p := range parts {
		fs = append(fs, constant(p))
	}
	return keyOf(t, keyfunc.Join(fs...), request("192.0.2.1:1", xff))
}

func TestJoin(t *testing.T) {
	require.Equal(t, "~join/11:203.0.113.7/5:alice", joined(t, "203.0.113.7", "alice"))
	require.Equal(t, "~join/0:", joined(t, ""))
	require.Regexp(t, `^~join/1:a/#[0-9a-f]{32}$`, joined(t, "a", strings.Repeat("x", 257)))

	long := strings.Repeat("x", 300)
	lists := [][]string{
		{"a:b", "c"}, {"a", "b:c"}, {"a:b:c"}, {"a", "b", "c"},
		{""}, {"", ""}, {"a"}, {"a", ""}, {"", "a"},
		{"1:a"}, {"/1:a"}, {"1:a/1:b"}, {"a/1:b"}, {"a", "b"}, {"~join/1:a"},
		{long}, {long + "1"}, {"x", long}, {long, "x"}, {strings.TrimPrefix(joined(t, long), "~join/")}, {joined(t, long)},
		{long[:256]}, {long[:257]}, {"\x00"}, {"\x00", "\x00"}, {"\xff"},
	}
	seen := map[string][]string{}
	for _, list := range lists {
		k := joined(t, list...)
		require.NotContains(t, seen, k, "%q", list)
		seen[k] = list
	}
	require.NotEqual(t, joined(t, joined(t, "a", "b"), "c"), joined(t, "a", joined(t, "b", "c")))
}

// The parts can be read back from the key, so no two lists share one.
func TestS1_JoinCanBeReadBack(t *testing.T) {
	part := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "/", ":", "1:", "/0:", "#", "/1:a", "~join"}))
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(part, 1, 6).Draw(t, "parts")
		key := joined(t, parts...)
		rest, ok := strings.CutPrefix(key, "~join")
		require.True(t, ok)
		for _, p := range parts {
			if len(p) > 256 {
				continue
			}
			rest, ok = strings.CutPrefix(rest, fmt.Sprintf("/%d:%s", len(p), p))
			require.True(t, ok, "%q in %q", p, key)
		}
		require.Empty(t, rest)
	})
}

// FuzzS1_Join: two lists of parts that differ give keys that differ.
func FuzzS1_Join(f *testing.F) {
	f.Add("a:b", "c", "a", "b:c")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		require.Equal(t, a == c && b == d, joined(t, a, b) == joined(t, c, d))
		require.Equal(t, a == c, joined(t, a) == joined(t, c))
		require.NotEqual(t, joined(t, a, b), joined(t, c))
		require.NotEqual(t, joined(t, a, b), joined(t, a, b, ""))
		require.NotEqual(t, joined(t, a, b), joined(t, a, b, c))
		require.NotEqual(t, joined(t, joined(t, a, b), c), joined(t, a, joined(t, b, c)))
	})
}

func TestJoinErrors(t *testing.T) {
	broken := errors.New("broken")
	for name, err := range map[string]error{"no key": keyfunc.ErrNoKey, "other": broken} {
		t.Run(name, func(t *testing.T) {
			failing := func(*http.Request) (string, error) { return "half", err }
			k, got := keyfunc.Join(constant("a"), failing)(request("192.0.2.1:1", xff))
			require.ErrorIs(t, got, err)
			require.Empty(t, k)
		})
	}
	k, err := keyfunc.Join(keyfunc.ClientIP(), keyfunc.Header("X-Tenant"))(request("192.0.2.1:1", xff))
	requireNoKey(t, k, err)

	require.Panics(t, func() { keyfunc.Join() })
	require.Panics(t, func() { keyfunc.Join(keyfunc.Global(), nil) })
}

// Changing the list afterwards does not change the key function.
func TestJoinCopiesItsParts(t *testing.T) {
	parts := []keyfunc.HTTP{constant("a"), constant("b")}
	key := keyfunc.Join(parts...)
	parts[0] = nil
	require.Equal(t, "~join/1:a/1:b", keyOf(t, key, request("192.0.2.1:1", xff)))
}

// Or asks until there is an identity, and stops at a failure.
func TestOr(t *testing.T) {
	broken := errors.New("broken")
	fails := func(err error) keyfunc.HTTP {
		return func(*http.Request) (string, error) { return "", err }
	}
	none := fails(fmt.Errorf("absent: %w", keyfunc.ErrNoKey))
	for name, row := range map[string]struct {
		key  keyfunc.HTTP
		want string
		err  error
	}{
		"the first":            {keyfunc.Or(constant("a"), constant("b")), "a", nil},
		"the second":           {keyfunc.Or(none, constant("b"), constant("c")), "b", nil},
		"none":                 {keyfunc.Or(none, none), "", keyfunc.ErrNoKey},
		"a failure, then one":  {keyfunc.Or(fails(broken), constant("b")), "", broken},
		"none, then a failure": {keyfunc.Or(none, fails(broken)), "", broken},
		"an empty key":         {keyfunc.Or(constant(""), constant("b")), "", nil},
	} {
		got, err := row.key(nil)
		require.Equal(t, row.want, got, name)
		require.ErrorIs(t, err, row.err, name)
	}
	require.PanicsWithValue(t, "keyfunc: Or: there are no parts", func() { keyfunc.Or() })
	require.PanicsWithValue(t, "keyfunc: Or: a part is nil", func() { keyfunc.Or(constant("a"), nil) })
}
