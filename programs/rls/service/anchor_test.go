package service_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/rls/service"
)

// rule is a descriptor of a file of envoyproxy/ratelimit, by the rules of its README.
type rule struct {
	Key, Value  string
	RateLimit   *rateLimit `yaml:"rate_limit"`
	Shadow      bool       `yaml:"shadow_mode"`
	Quota       bool       `yaml:"quota_mode"`
	Share       bool       `yaml:"share_threshold"`
	Descriptors []rule
}

type rateLimit struct {
	Unit      string
	Requests  uint32 `yaml:"requests_per_unit"`
	Unlimited bool
	Name      string
	Replaces  []struct{ Name string }
}

// model is envoyproxy/ratelimit as its README describes it, with counts of its own.
type model struct {
	Domain      string
	Descriptors []rule
	counts      map[string]uint32
	// joined is the list of differences: here keys and values are compared as one text, and a
	// denied request charges its descriptors.
	joined bool
}

func newModel(t *testing.T, file string, joined bool) *model {
	m := &model{counts: map[string]uint32{}, joined: joined}
	require.NoError(t, yaml.Unmarshal([]byte(file), m), file)
	return m
}

// match finds the rule of an entry: an exact value before the first pattern that fits before any
// value.
func (m *model) match(level []rule, key, value string) *rule {
	one := func(k, v string) string {
		if m.joined {
			return k + "_" + v
		}
		return k + "\x00" + v
	}
	is := func(r *rule) string {
		if r.Value == "" {
			return r.Key
		}
		return one(r.Key, r.Value)
	}
	for i := range level {
		if is(&level[i]) == one(key, value) {
			return &level[i]
		}
	}
	for i := range level {
		if strings.Contains(level[i].Value, "*") {
			pattern := strings.ReplaceAll(regexp.QuoteMeta(is(&level[i])), `\*`, `(?s:.*)`)
			if regexp.MustCompile(`\A` + pattern + `\z`).MatchString(one(key, value)) {
				return &level[i]
			}
		}
	}
	for i := range level {
		if is(&level[i]) == key {
			return &level[i]
		}
	}
	return nil
}

// find is the rule at which a descriptor ends, and the text by which it is counted.
func (m *model) find(entries []*ratelimit.RateLimitDescriptor_Entry) (at *rule, counted string) {
	level := m.Descriptors
	for _, e := range entries {
		if at = m.match(level, e.Key, e.Value); at == nil {
			return nil, ""
		}
		value := e.Value
		if at.Share {
			value = at.Value
		}
		counted += fmt.Sprintf("%q=%q ", e.Key, value)
		level = at.Descriptors
	}
	return at, counted
}

// ask is the answer to a request, and the code of each of its descriptors.
func (m *model) ask(r *rls.RateLimitRequest) (overall rls.RateLimitResponse_Code, codes []rls.RateLimitResponse_Code) {
	rules, keys := make([]*rule, len(r.Descriptors)), make([]string, len(r.Descriptors))
	var replaced []string
	for i, d := range r.Descriptors {
		if r.Domain == m.Domain {
			rules[i], keys[i] = m.find(d.Entries)
		}
		if rules[i] != nil && rules[i].RateLimit != nil {
			for _, other := range rules[i].RateLimit.Replaces {
				replaced = append(replaced, other.Name)
			}
		}
	}
	before := map[string]uint32{}
	for k, n := range m.counts {
		before[k] = n
	}
	codes = make([]rls.RateLimitResponse_Code, len(rules))
	quotas, spent, denied := 0, 0, false
	for i, at := range rules {
		codes[i] = under
		if at == nil || at.RateLimit == nil || at.RateLimit.Unlimited || at.RateLimit.Name != "" && slices.Contains(replaced, at.RateLimit.Name) {
			continue
		}
		n := max(r.HitsAddend, 1)
		fits := m.counts[keys[i]]+n <= at.RateLimit.Requests
		if fits || m.joined {
			m.counts[keys[i]] += n
		}
		if at.Quota {
			quotas++
		}
		switch {
		case fits || at.Shadow:
		case at.Quota:
			codes[i] = over
			spent++
		default:
			codes[i], denied = over, true
		}
	}
	if denied && !m.joined {
		m.counts = before
	}
	if denied || quotas > 0 && spent == quotas {
		return over, codes
	}
	return under, codes
}

// direct is a service without a socket, in the bubble of a test.
func direct(t *testing.T, file string) *service.Service {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "d.yaml"), []byte(file), 0o600))
	f, err := config.Parse(filepath.Join(dir, "rls.yaml"), []byte("envoy_files: [d.yaml]\n"))
	require.NoError(t, err, file)
	s, err := service.New(f, service.Options{Log: quiet})
	require.NoError(t, err, file)
	return s
}

// TestLikeTheAnchor: the decisions on each case are those of the documented rules of
// envoyproxy/ratelimit, but for the differences in the list.
func TestLikeTheAnchor(t *testing.T) {
	decisions, differ, dangerous := 0, 0, 0
	for name, c := range anchorCases() {
		synctest.Test(t, func(t *testing.T) {
			s, rules, anchor := direct(t, c.file), newModel(t, c.file, false), newModel(t, c.file, true)
			for i, text := range c.requests {
				r := request(rules.Domain, text)
				got, err := s.ShouldRateLimit(t.Context(), r)
				require.NoError(t, err, "%s: %s", name, text)
				overall, codes := rules.ask(r)
				theirs, _ := anchor.ask(r)
				decisions++
				if theirs != overall {
					differ++
				}
				if got.OverallCode != overall && overall == over {
					dangerous++
				}
				require.Equal(t, overall, got.OverallCode, "%s, request %d: %s\n%s", name, i, text, c.file)
				for k, code := range codes {
					require.Equal(t, code, got.Statuses[k].Code, "%s, request %d, descriptor %d: %s\n%s", name, i, k, text, c.file)
				}
			}
		})
	}
	t.Logf("%d cases, %d decisions: %d by a difference of the list, %d dangerous", len(anchorCases()), decisions, differ, dangerous)
	require.GreaterOrEqual(t, len(anchorCases()), 57)
	require.GreaterOrEqual(t, decisions, 727)
}

// anchorCase is a file and requests: descriptors with a semicolon between, entries with a comma.
type anchorCase struct {
	file     string
	requests []string
}

func request(domain, text string) *rls.RateLimitRequest {
	r := &rls.RateLimitRequest{Domain: domain}
	text, hits, ok := strings.Cut(text, " x")
	if ok {
		_, _ = fmt.Sscan(hits, &r.HitsAddend)
	}
	for d := range strings.SplitSeq(text, ";") {
		r.Descriptors = append(r.Descriptors, descriptor(strings.Split(d, ",")...))
	}
	return r
}

// written are cases in the words of the README's rules; each request is sent until its limit, and beyond.
var written = map[string]anchorCase{
	"values":                   {"{key: db, value: a, LIMIT 2}\n{key: db, value: b, LIMIT 3}", []string{"db=a", "db=b", "db=c", "other=a"}},
	"nested":                   {"{key: kind, value: sale, descriptors: [{key: to, LIMIT 2}]}\n{key: to, LIMIT 3}", []string{"kind=sale,to=1;to=1", "kind=sale,to=2", "to=1", "kind=sale", "kind=other,to=1"}},
	"a value before any":       {"{key: ip, LIMIT 3}\n{key: ip, value: 50.0.0.5, LIMIT 0}", []string{"ip=1", "ip=50.0.0.5", "ip=2"}},
	"depth":                    {"{key: k, value: v, LIMIT 1}", []string{"k=v,sub=x", "k=v"}},
	"unlimited":                {"{key: ldap, rate_limit: {unlimited: true}}\n{key: az, LIMIT 2}", []string{"ldap=1", "az=1", "ldap=1;az=2"}},
	"shadow":                   {"{key: s, descriptors: [{key: u, value: a, LIMIT 1, shadow_mode: true}, {key: u, value: b, LIMIT 2}]}", []string{"s=x,u=a", "s=x,u=b", "s=x,u=a;s=y,u=b"}},
	"replaces":                 {"{key: k1, value: v, descriptors: [{key: u, value: me, rate_limit: {name: one, unit: hour, requests_per_unit: 1}}]}\n{key: k2, value: v, descriptors: [{key: u, value: me, rate_limit: {replaces: [{name: one}], unit: hour, requests_per_unit: 2}}]}", []string{"k1=v,u=me;k2=v,u=me", "k1=v,u=me", "k2=v,u=me"}},
	"detailed":                 {"{key: k, detailed_metric: true, LIMIT 2}\n{key: k, value: v, LIMIT 1}", []string{"k=x", "k=y", "k=v"}},
	"a pattern at the end":     {"{key: k, value: \"foo*\", LIMIT 2}", []string{"k=foo", "k=foobar", "k=fo", "k=xfoo"}},
	"a pattern in the middle":  {"{key: path, value: \"/api/*/action\", LIMIT 2}", []string{"path=/api/1/action", "path=/api/2/action", "path=/api//action", "path=/api/action", "path=/api/1/other"}},
	"patterns everywhere":      {"{key: r, value: \"/api/*/res/*/go\", LIMIT 2}", []string{"r=/api/v1/res/1/go", "r=/api/x/res/y/z/go", "r=/api/res/1/go", "r=/api/v/res/go"}},
	"a pattern at the start":   {"{key: host, value: \"*.example\", LIMIT 1}", []string{"host=a.example", "host=.example", "host=example", "host=a.example.net"}},
	"only a star":              {"{key: k, value: \"*\", LIMIT 1}", []string{"k=a", "k=", "k=b"}},
	"overlapping ends":         {"{key: k, value: \"ab*ba\", LIMIT 1}", []string{"k=aba", "k=abba", "k=abxba"}},
	"the first pattern wins":   {"{key: p, value: \"/a*\", LIMIT 1}\n{key: p, value: \"/ab*\", LIMIT 3}\n{key: p, LIMIT 2}", []string{"p=/abc", "p=/ax", "p=/x"}},
	"the first pattern again":  {"{key: p, value: \"/ab*\", LIMIT 3}\n{key: p, value: \"/a*\", LIMIT 1}", []string{"p=/abc", "p=/ax"}},
	"a star asked literally":   {"{key: p, value: \"/a*\", LIMIT 1}", []string{"p=/a*", "p=/ab"}},
	"a pattern with children":  {"{key: p, value: \"a*c\", descriptors: [{key: u, LIMIT 1}]}", []string{"p=abc,u=1", "p=adc,u=1", "p=ab,u=1", "p=abc"}},
	"newlines":                 {"{key: p, value: \"a*c\", LIMIT 1}", []string{"p=a\nc", "p=a\n\nc"}},
	"share":                    {"{key: f, value: \"f/*\", share_threshold: true, LIMIT 2}\n{key: g, value: \"g/*\", LIMIT 2}", []string{"f=f/a", "f=f/b", "f=f/c", "g=g/a", "g=g/b"}},
	"share, nested":            {"{key: u, value: \"u/*\", share_threshold: true, descriptors: [{key: r, value: \"r/*\", share_threshold: true, descriptors: [{key: a, LIMIT 2}]}]}", []string{"u=u/1,r=r/1,a=x", "u=u/2,r=r/2,a=x", "u=u/1,r=r/1,a=y"}},
	"share of the upper level": {"{key: p, value: \"p/*\", share_threshold: true, descriptors: [{key: f, value: \"f/*\", descriptors: [{key: t, LIMIT 2}]}]}", []string{"p=p/1,f=f/1,t=a", "p=p/2,f=f/1,t=a", "p=p/2,f=f/2,t=a"}},
	"share beside a value":     {"{key: f, value: t1, LIMIT 1}\n{key: f, value: \"t*\", share_threshold: true, LIMIT 2}", []string{"f=t1", "f=t2", "f=t3"}},
	"share in the middle":      {"{key: m, value: \"/api*v1\", share_threshold: true, LIMIT 2}\n{key: n, value: \"s*e*r\", share_threshold: true, value_to_metric: true, LIMIT 1}", []string{"m=/api/1/v1", "m=/api/2/v1", "n=s1e1r", "n=s2e2r"}},
	"value_to_metric":          {"{key: r, value_to_metric: true, descriptors: [{key: m, value_to_metric: true, descriptors: [{key: s, LIMIT 2}]}]}", []string{"r=a,m=GET,s=1", "r=b,m=GET,s=1"}},
	"quota":                    {"{key: s, value: one, quota_mode: true, LIMIT 1}\n{key: s, value: two, quota_mode: true, LIMIT 2}", []string{"s=one;s=two", "s=one", "s=two"}},
	"quota and limit":          {"{key: q, quota_mode: true, LIMIT 1}\n{key: l, LIMIT 3}", []string{"q=1;l=1", "l=1", "q=1"}},
	"quota beside one unknown": {"{key: q, quota_mode: true, LIMIT 1}", []string{"q=1;x=1", "x=1"}},
	"metadata":                 {"{key: k, LIMIT 1, metadata: {name: s1, more: {a: 1}}}", []string{"k=1", "k=2"}},
	"an empty value":           {"{key: k, value: \"\", LIMIT 1}", []string{"k=", "k=a"}},
	"zero":                     {"{key: foo, LIMIT 2, descriptors: [{key: bar, LIMIT 3}, {key: bar, value: banned, LIMIT 0}, {key: bay, rate_limit: {unlimited: true}}, {key: baz, value: shady, LIMIT 1, shadow_mode: true}]}", []string{"foo=1", "foo=1,bar=2", "foo=1,bar=banned", "foo=1,bay=2", "foo=1,baz=shady"}},
	"addend":                   {"{key: k, LIMIT 10}", []string{"k=1 x4", "k=1 x11", "k=2 x10"}},
}

// anchorCases are the written ones, and files made at random of the same words.
func anchorCases() map[string]anchorCase {
	all := map[string]anchorCase{}
	limit := regexp.MustCompile(`LIMIT (\d+)`)
	add := func(name, descriptors string, requests []string) {
		file := "domain: d\ndescriptors:\n"
		for line := range strings.SplitSeq(descriptors, "\n") {
			file += "  - " + limit.ReplaceAllString(line, "rate_limit: {unit: hour, requests_per_unit: $1}") + "\n"
		}
		all[name] = anchorCase{file, requests}
	}
	for name, c := range written {
		var requests []string
		for range 4 {
			requests = append(requests, c.requests...)
		}
		add(name, c.file, requests)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	for n := range 40 {
		var lines []string
		seen := map[string]bool{}
		for range 5 {
			key, value := pick("a", "b"), pick("", "", "x", "xy", "x*", "*y", "x*y", "*", "x*y*z")
			if seen[key+value] {
				continue
			}
			seen[key+value] = true
			flags := pick("", "", ", shadow_mode: true", ", quota_mode: true")
			if strings.Contains(value, "*") {
				flags += pick("", ", share_threshold: true")
			}
			inner := pick("", "", fmt.Sprintf(", descriptors: [{key: c, LIMIT %d}]", rng.IntN(3)))
			lines = append(lines, fmt.Sprintf("{key: %s, value: %q, LIMIT %d%s%s}", key, value, rng.IntN(4), flags, inner))
		}
		var requests []string
		for range 30 {
			entry := func() string { return pick("a", "b") + "=" + pick("", "x", "xy", "xxy", "y", "xyz", "z") }
			one := entry() + pick("", "", ",c=1")
			if rng.IntN(3) == 0 {
				one += ";" + entry()
			}
			requests = append(requests, one)
		}
		add(fmt.Sprint("random ", n), strings.Join(lines, "\n"), requests)
	}
	return all
}

// differences are decided otherwise than by envoyproxy/ratelimit, each with what shows it.
var differences = []struct {
	what     string
	file     string
	requests []string
	refused  string // the error of the file, if it is refused
}{
	{what: "A request that is denied charges none of its descriptors; there it charges all of them.",
		file: "{key: a, LIMIT 1}\n{key: b, LIMIT 1}", requests: []string{"a=1", "a=1;b=1", "b=1"}},
	{what: "A key and a value are two texts; there `a_b` with `c` is `a` with `b_c`.",
		file: "{key: a, value: b_c, LIMIT 0}", requests: []string{"a_b=c"}},
	{what: "An asterisk in a key is refused; there it is a pattern of key and value together.",
		file: "{key: \"a*\", LIMIT 1}", refused: `descriptors[0].key: is "a*": patterns are for values`},
	{what: "`rate_limit` without `requests_per_unit` is refused; there it denies every request.",
		file: "{key: a, rate_limit: {unit: hour}}", refused: "descriptors[0].rate_limit: wants unit and requests_per_unit, or unlimited"},
	{what: "`unit_multiplier` is refused.",
		file: "{key: a, rate_limit: {unit: hour, requests_per_unit: 1, unit_multiplier: 5}}", refused: "descriptors[0].rate_limit.unit_multiplier: unknown field"},
}

const listed = "../ENVOY.md"

// TestDifferences: each difference of the page shows, and the page lists no other.
func TestDifferences(t *testing.T) {
	limit := regexp.MustCompile(`LIMIT (\d+)`)
	page := "<!-- The list is that of TestDifferences; SLUICE_UPDATE=1 writes it. -->\n\n"
	for _, d := range differences {
		page += "- " + d.what + "\n"
		file := "domain: d\ndescriptors:\n"
		for line := range strings.SplitSeq(d.file, "\n") {
			file += "  - " + limit.ReplaceAllString(line, "rate_limit: {unit: hour, requests_per_unit: $1}") + "\n"
		}
		if d.refused != "" {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "d.yaml"), []byte(file), 0o600))
			_, err := config.Parse(filepath.Join(dir, "rls.yaml"), []byte("envoy_files: [d.yaml]\n"))
			require.ErrorContains(t, err, d.refused)
			require.Regexp(t, `d\.yaml:\d+:\d+: `, err.Error())
			continue
		}
		s, anchor, differs := direct(t, file), newModel(t, file, true), false
		for _, text := range d.requests {
			r := request("d", text)
			got, err := s.ShouldRateLimit(t.Context(), r)
			require.NoError(t, err)
			theirs, _ := anchor.ask(r)
			differs = differs || theirs != got.OverallCode
		}
		require.True(t, differs, d.what)
	}
	text, err := os.ReadFile(listed)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(text), "## Differences in decisions\n\n")
	require.True(t, ok)
	if os.Getenv("SLUICE_UPDATE") != "" {
		require.NoError(t, os.WriteFile(listed, []byte(head+"## Differences in decisions\n\n"+page), 0o644))
		return
	}
	require.Equal(t, page, rest, "SLUICE_UPDATE=1 go test -run TestDifferences ./service")
}

// TestWindowsOfTheAnchor: a window of a file of envoyproxy/ratelimit begins at whole units of the
// clock, also without Redis.
func TestWindowsOfTheAnchor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(40 * time.Minute)
		s := direct(t, "domain: d\ndescriptors:\n  - {key: k, rate_limit: {unit: hour, requests_per_unit: 1}}\n")
		ask := func() rls.RateLimitResponse_Code {
			got, err := s.ShouldRateLimit(t.Context(), request("d", "k=1"))
			require.NoError(t, err)
			return got.OverallCode
		}
		require.Equal(t, []rls.RateLimitResponse_Code{under, over}, []rls.RateLimitResponse_Code{ask(), ask()})
		time.Sleep(20 * time.Minute)
		require.Equal(t, under, ask())
	})
}

// TestWarnings: fields that change no decision are accepted with a line and a column.
func TestWarnings(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "d.yaml"), []byte(
		"domain: d\ndescriptors:\n  - key: k\n    value_to_metric: true\n    metadata: {a: b}\n    rate_limit: {unit: hour, requests_per_unit: 1}\n"), 0o600))
	f, err := config.Parse(filepath.Join(dir, "rls.yaml"), []byte("envoy_files: [d.yaml]\n"))
	require.NoError(t, err)
	require.Regexp(t, `d\.yaml:4:5: descriptors\[0\]\.value_to_metric: is not supported and changes no decision\n.*d\.yaml:5:5: descriptors\[0\]\.metadata: `, f.Warnings.Error())
}
