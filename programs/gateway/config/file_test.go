package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/programs/gateway/config"
)

// The sample is a file that works, and the documentation of the fields.
func TestSample(t *testing.T) {
	f, err := config.Load("../gateway.yaml")
	require.NoError(t, err)
	require.Len(t, f.Routes, 3)
	api := f.Routes[2]
	require.Equal(t, "/api/", api.Pattern)
	require.Equal(t, "127.0.0.1:9001", api.Upstream.Host)
	require.Equal(t, "deny", api.MissingKey)
	require.Equal(t, "shared", f.Routes[0].MissingKey)
	require.Equal(t, []string{"everybody", "api-per-key", "api-daily", "api-strict-trial"}, limitNames(api))
	require.Same(t, f.Routes[0].Limits[0], api.Limits[0], "a limit that is named is shared")
	require.Equal(t, []config.Key{{Kind: "secret", Name: "X-Api-Key"}, {Kind: "route"}}, api.Limits[1].Keys)
	require.Equal(t, config.Cost{Header: "X-Units"}, api.Limits[2].Cost)
	require.True(t, api.Limits[3].Shadow)
	require.Equal(t, "strict", api.Limits[3].Spec.Algorithm)
	require.Equal(t, algo.PerMinute(600), api.Limits[1].Spec.Rate)
	require.False(t, f.Overload.Off)
	require.Equal(t, 2*time.Second, f.Timeouts.Unready)
}

// The fields that are commented out in the sample exist, with the defaults that
// it says.
func TestSampleComments(t *testing.T) {
	data, err := os.ReadFile("../gateway.yaml")
	require.NoError(t, err)
	plain, err := config.Parse("sample", data)
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "# "); ok && strings.HasPrefix(rest, "timeouts:") || strings.HasPrefix(line, "#   ") && strings.Contains(line, ": ") && len(lines) > 0 {
			lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(line, "# "), "#"))
		} else if len(lines) > 0 {
			break
		}
	}
	require.Len(t, lines, 10)
	f, err := config.Parse("timeouts", []byte(strings.Join(lines, "")+"routes: [{pattern: /, upstream: 'http://a'}]"))
	require.NoError(t, err)
	require.Equal(t, plain.Timeouts, f.Timeouts)
}

func limitNames(r *config.Route) (all []string) {
	for _, l := range r.Limits {
		all = append(all, l.Name)
	}
	return all
}

// Every mistake is said with its line, column and field.
func TestMistakes(t *testing.T) {
	const head = "routes:\n  - pattern: /\n    upstream: http://a\n"
	limit := func(s string) string { return head + "    limits:\n      - {name: a, key: ip, " + s + "}\n" }
	for _, test := range []struct{ name, file, want string }{
		{"not YAML", "a: [1, 2\nb: 3\n", "f:2:2: did not find"},
		{"tab", "routes:\n\t- a\n", "f:2:1: found character"},
		{"empty", "", "f: "},
		{"no mapping", "- a\n", "f:1:1: is a list, want a mapping"},
		{"nothing to serve", "listen: a:1\n", "f:1:1: has neither routes nor domains"},
		{"unknown field", head + "lisen: a:1\n", "f:4:1: lisen: unknown field, want one of listen,"},
		{"unknown in route", head + "    upsteam: x\n", "f:4:5: routes[0].upsteam: unknown field"},
		{"field twice", head + "listen: a:1\nlisten: a:2\n", "f:5:1: listen: is here a second time; the first is in line 4"},
		{"missing", "routes:\n  - pattern: /\n", "f:2:5: routes[0].upstream: is missing"},
		{"wrong kind", head + "timeouts: 3s\n", `f:4:11: timeouts: is "3s", want a mapping of read_header`},
		{"address", head + "listen: 80\n", `f:4:9: listen: is "80", want host:port`},
		{"no such port", head + "listen: h:99999\n", `f:4:9: listen: is "h:99999", want host:port`},
		{"one address", head + "listen: h:1\nadmin: h:1\n", "f:1:1: has one address for listen and admin, h:1"},
		{"no such port of the upstream", "routes:\n  - pattern: /\n    upstream: http://a:99999\n", "f:3:15: routes[0].upstream: is \"http://a:99999\", want a URL"},
		{"ban with a burst", "domains: [{name: d, descriptors: [{key: k, limit: 0/s burst 5}]}]\n", `f:1:51: domains[0].descriptors[0].limit: is "0/s burst 5", want a rate of 0 and nothing else`},
		{"ban without a period", "domains: [{name: d, descriptors: [{key: k, limit: 0/x}]}]\n", `limit: is "0/x", want a rate of 0`},
		{"upstream", "routes:\n  - pattern: /\n    upstream: a:80\n", "f:3:15: routes[0].upstream: is \"a:80\", want a URL"},
		{"pattern", "routes:\n  - pattern: GET\n    upstream: http://a\n", `f:2:14: routes[0].pattern: is "GET": parsing "GET"`},
		{"patterns in conflict", head + "  - pattern: /\n    upstream: http://b\n", `f:4:14: routes[1].pattern: is "/": pattern "/" conflicts with pattern "/"`},
		{"rate", limit("limit: 5/fortnight"), `f:5:35: routes[0].limits[0].limit: is "5/fortnight": `},
		{"rate of 0", limit("limit: 0/s"), `f:5:35: routes[0].limits[0].limit: is "0/s": algo: rate: count is 0, want 1 or more`},
		{"option of another algorithm", limit("limit: 5/s cells 3"), "f:5:35: routes[0].limits[0].limit: "},
		{"key", head + "    limits:\n      - {name: a, key: cookie, limit: 1/s}\n", `f:5:24: routes[0].limits[0].key: is "cookie", want ip,`},
		{"key without a name", head + "    limits:\n      - {name: a, key: 'cookie:', limit: 1/s}\n", `f:5:24: routes[0].limits[0].key: is "cookie:", which has no name`},
		{"claim without keys", head + "    limits:\n      - {name: a, key: 'jwt:sub', limit: 1/s}\n", "f:5:24: routes[0].limits[0].key: has a claim of a token, so there must be jwt.keys"},
		{"spellings in conflict", "routes:\n  - {pattern: /a, upstream: 'http://a', any_spelling: true}\n  - {pattern: /A/, upstream: 'http://a', any_spelling: true}\n  - {pattern: /A, upstream: 'http://a', any_spelling: true}\n", `f:4:5: routes[2]: is "/a/{$}": pattern "/a/{$}" conflicts with pattern "/a/{$}"`},
		{"part of the path", head + "    limits:\n      - {name: a, key: 'path:id', limit: 1/s}\n", `routes[0]: has the limit "a" by path:id, and the pattern "/" has no {id}`},
		{"key in list", head + "    limits:\n      - {name: a, key: [ip, 'header:a b'], limit: 1/s}\n", `f:5:29: routes[0].limits[0].key[1]: is "header:a b"`},
		{"name", head + "    limits:\n      - {name: a b, key: ip, limit: 1/s}\n", `f:5:16: routes[0].limits[0].name: is "a b", want 1 to 64`},
		{"name taken", head + "    limits:\n      - {name: a, key: ip, limit: 1/s}\n      - {name: a, key: ip, limit: 2/s}\n", `f:6:16: routes[0].limits[1].name: is "a", which the limit in line 5`},
		{"no such limit", head + "    limits: [b]\n", `f:4:14: routes[0].limits[0]: is "b", and no limit above`},
		{"limit twice", "limits: [{name: a, key: ip, limit: 1/s}]\n" + head + "    limits: [a, a]\n", `f:5:17: routes[0].limits[1]: is "a" for the second time`},
		{"cost", limit("limit: 1/s, cost: -1"), "f:5:46: routes[0].limits[0].cost: is \"-1\", want a whole number from 1"},
		{"missing key", head + "    missing_key: open\n", "f:4:18: routes[0].missing_key: is \"open\", want one of shared, deny, skip"},
		{"duration", head + "timeouts: {drain: soon}\n", "f:4:19: timeouts.drain: is \"soon\", want a duration"},
		{"trusts everybody", head + "trusted_proxies: [0.0.0.0/0]\n", "f:4:18: trusted_proxies: keyfunc: the trusted prefixes hold all of IPv4, so any client could choose its key: list only your proxies"},
		{"nothing", limit("limit: 0/s"), "count is 0, want 1 or more"},
		{"keys", limit("limit: 1/s keys 0"), "keys is 0, want 1 to"},
		{"no prefix", head + "trusted_proxies: [10.0.0.0/8, x]\n", `f:4:31: trusted_proxies[1]: is "x", want an address or a prefix`},
		{"pepper", head + "pepper: {env: A, file: b}\n", "f:4:9: pepper: wants one of env and file"},
		{"overload", head + "overload: perhaps\n", "f:4:11: overload: is \"perhaps\", want true or false"},
		{"redis without addresses", head + "store: redis\n", "redis.addresses: is missing, with store: redis"},
		{"not known to Redis", limit("limit: strict 5/s") + "store: redis\nredis: {addresses: ['a:1']}\n", "f:5:35: routes[0].limits[0].limit: is \"strict 5/s\": distributed: algorithm is \"strict\", want token-bucket"},
		{"too much for Redis", limit("limit: sliding-log 20000/s") + "store: redis\nredis: {addresses: ['a:1']}\n", "f:5:35: routes[0].limits[0].limit: is \"sliding-log 20000/s\": distributed:"},
		{"secret on Redis", head + "    limits: [{name: a, key: 'secret:X', limit: 1/s}]\nstore: redis\nredis: {addresses: ['a:1']}\n", "f:4:29: routes[0].limits[0].key: has a secret"},
		{"snapshot of Redis", head + "snapshot: {file: s}\nstore: redis\nredis: {addresses: ['a:1']}\n", "f:4:1: snapshot: is for store: local"},
		{"secret in a snapshot", head + "    limits: [{name: a, key: 'secret:X', limit: 1/s}]\nsnapshot: {file: s}\n", "f:4:29: routes[0].limits[0].key: has a secret, so with a snapshot"},
		{"descriptor", "domains:\n  - name: d\n    descriptors:\n      - {key: k, rate: 1/s}\n", "f:4:18: domains[0].descriptors[0].rate: unknown field"},
		{"descriptor in descriptor", "domains:\n  - name: d\n    descriptors:\n      - key: k\n        descriptors: [{key: l, limit: x}]\n", `f:5:39: domains[0].descriptors[0].descriptors[0].limit: is "x"`},
		{"descriptor twice", "domains:\n  - name: d\n    descriptors: [{key: k, value: v}, {key: k}, {key: k, value: v}]\n", "f:3:49: domains[0].descriptors[2]: is the same as that in line 3"},
		{"domain twice", "domains: [{name: d, descriptors: []}, {name: d, descriptors: []}]\n", "f:1:46: domains[1].name: is \"d\", which the domain in line 1"},
		{"limited and not", "domains: [{name: d, descriptors: [{key: k, limit: 1/s, unlimited: true}]}]\n", "has both limit and unlimited"},
		{"holds itself", "domains: [{name: d, descriptors: &a [{key: k, descriptors: *a}]}]\n", "levels deep"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := config.Parse("f", []byte(test.file))
			var errs config.Errors
			require.ErrorAs(t, err, &errs)
			require.NotRegexp(t, `IPConfig|DenyAll|MaxKeys|max keys`, err.Error(), "the names of the file")
			require.Contains(t, err.Error(), test.want)
			require.Len(t, errs, 1, "%v", err)
		})
	}
}

// One pass finds everything, in the order of the file.
func TestAllMistakesAtOnce(t *testing.T) {
	_, err := config.Parse("f", []byte("overload: x\nroutes:\n  - pattern: /\n    up: 1\nlisten: y\n"))
	var errs config.Errors
	require.ErrorAs(t, err, &errs)
	var at []string
	for _, e := range errs {
		at = append(at, e.Field)
	}
	require.Equal(t, []string{"overload", "routes[0].upstream", "routes[0].up", "listen"}, at)
}

func TestPepper(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pepper")
	require.NoError(t, os.WriteFile(path, []byte("salt"), 0o600))
	b, err := config.Secret{File: path}.Read()
	require.NoError(t, err)
	require.Equal(t, "salt", string(b))
	t.Setenv("GATEWAY_TEST_PEPPER", "chili")
	b, err = config.Secret{Env: "GATEWAY_TEST_PEPPER"}.Read()
	require.NoError(t, err)
	require.Equal(t, "chili", string(b))
	_, err = config.Secret{Env: "GATEWAY_TEST_NO_PEPPER"}.Read()
	require.ErrorContains(t, err, "GATEWAY_TEST_NO_PEPPER is not set")
	b, err = config.Secret{}.Read()
	require.NoError(t, err)
	require.Nil(t, b)
}

// An alias is replaced by its anchor.
func TestAlias(t *testing.T) {
	f, err := config.Parse("f", []byte("routes:\n  - pattern: /a\n    upstream: &u http://a\n  - pattern: /b\n    upstream: *u\n"))
	require.NoError(t, err)
	require.Equal(t, "a", f.Routes[1].Upstream.Host)
}

// A limit by address, in a file for other machines that does not say whether there are proxies, is
// warned of.
func TestAddressesBehindProxies(t *testing.T) {
	const routes = "routes: [{pattern: /, upstream: 'http://u', limits: [{name: a, key: ip, limit: 1/s}]}]\n"
	for file, warned := range map[string]bool{
		"listen: ':8080'\n":                                true,
		"listen: ':8080'\ntrusted_proxies: []\n":           false,
		"listen: ':8080'\ntrusted_proxies: [10.0.0.0/8]\n": false,
		"":                         false,
		"listen: 'localhost:80'\n": false,
	} {
		f, err := config.Parse("f", []byte(file+routes))
		require.NoError(t, err)
		require.Equal(t, warned, len(f.Warnings) == 1, file)
	}
}
