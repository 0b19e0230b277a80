package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/programs/plan/report"
)

// access is a log of ten minutes: each of 200 users loads a page of five calls each minute, and a script
// calls ten times a second.
func access() string {
	var b strings.Builder
	start := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	line := func(at time.Duration, address, user, path string, status int) {
		fmt.Fprintf(&b, `{"time":%q,"remote_addr":%q,"remote_user":%q,"method":"GET","uri":%q,"status":%d,"request_time":0.020,"units":%d}`+"\n",
			start.Add(at).Format(time.RFC3339Nano), address, user, path, status, len(user))
	}
	for second := range 600 {
		for u := range 200 {
			if u%60 == second%60 {
				for range 5 {
					line(time.Duration(second)*time.Second, fmt.Sprintf("10.0.%d.%d", u/100, u%100), fmt.Sprint("user", u), "/page?x=1", 200)
				}
			}
		}
		for i := range 10 {
			line(time.Duration(second)*time.Second+time.Duration(i)*100*time.Millisecond, "2001:db8::7", "script", "/export", 200+i/9)
		}
	}
	return b.String()
}

// plan runs the program.
func plan(t *testing.T, log string, args ...string) (status int, stdout, stderr string, err error) {
	t.Helper()
	var out, messages bytes.Buffer
	status, err = run(t.Context(), append(args, "-"), strings.NewReader(log), &out, &messages)
	return status, out.String(), messages.String(), err
}

// results runs the program, and reads its JSON.
func results(t *testing.T, log string, args ...string) *report.Report {
	t.Helper()
	status, out, messages, err := plan(t, log, append(args, "-json", "-", "-q")...)
	require.NoError(t, err, messages)
	require.Zero(t, status)
	var r report.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	return &r
}

func TestResults(t *testing.T) {
	r := results(t, access(), "-limit", "1/s burst 5", "-limit", "sliding-log 100/min", "-cover", "99", "-rates", "1/s 20/s")
	require.EqualValues(t, 16000, r.Lines)
	one := r.Tracks[0]
	require.EqualValues(t, 16000, one.Requests)
	require.EqualValues(t, 201, one.Keys)
	require.Equal(t, "address", one.Key)

	bucket := one.Limits[0]
	require.Equal(t, "1/s burst 5", bucket.Limit)
	require.EqualValues(t, 1, bucket.KeysDenied)
	require.Equal(t, "2001:db8::/64", bucket.Worst[0].Key)
	require.EqualValues(t, 6000, bucket.Worst[0].Requests)
	require.InDelta(t, 5400, bucket.Denied, 10)
	require.Equal(t, bucket.Denied, bucket.Worst[0].Denied)
	require.Equal(t, "1/s burst 5", bucket.Suggested)

	require.Equal(t, "1/s burst 5", one.Suggestions[0].Limit)
	require.EqualValues(t, 65, one.Suggestions[0].Minute)
	require.True(t, one.Suggestions[0].Tightest)
	require.EqualValues(t, 200, one.Suggestions[0].Keys)
	require.Equal(t, "20/s burst 5", one.Suggestions[1].Limit)
	require.Len(t, one.NotCovered, 1)
	require.InDelta(t, 5401, one.NotCovered[0].Needs, 2)
	require.Equal(t, "sliding-window 10/min", one.Suggestions[2].Limit)
	require.Equal(t, "fixed-window 50/day zone UTC", one.Suggestions[3].Limit)
	require.EqualValues(t, 5, one.InFlight.Covered)
	require.EqualValues(t, 5, one.InFlight.All)
}

// TestRecords: keys, filters and costs choose what is counted.
func TestRecords(t *testing.T) {
	log := access()
	require.EqualValues(t, 202, results(t, log, "-key", "address,status").Tracks[0].Keys)
	require.EqualValues(t, 2, results(t, log, "-key", "path").Tracks[0].Keys)
	require.EqualValues(t, 1, results(t, log, "-key", "global").Tracks[0].Keys)
	require.EqualValues(t, 3, results(t, log, "-ipv4-bits", "24").Tracks[0].Keys)
	require.EqualValues(t, 10000, results(t, log, "-where", "path=/page").Tracks[0].Requests)
	require.EqualValues(t, 6000, results(t, log, "-where", "path!=/page").Tracks[0].Requests)
	require.EqualValues(t, 600, results(t, log, "-where", "status~^20[1-9]").Tracks[0].Requests)
	require.EqualValues(t, 5400, results(t, log, "-where", "status!~^20[1-9]", "-where", "user=script").Tracks[0].Requests)
	require.EqualValues(t, 36000, results(t, log, "-where", "user=script", "-cost", "units").Tracks[0].Units)
	r := results(t, strings.ReplaceAll(log, "remote_addr", "nothing"), "-key", "user")
	require.EqualValues(t, 201, r.Tracks[0].Keys)
	_, _, _, err := plan(t, log, "-key", "tenant")
	require.ErrorContains(t, err, `no line has the field of the key "tenant". The log has: address, duration, method, path, status, time, user,`)
	_, _, _, err = plan(t, log, "-cost", "tenant")
	require.ErrorContains(t, err, "no line has tenant, which -cost names. The log has: address,")
}

// TestProxies: behind a proxy the address is the forwarded one.
func TestProxies(t *testing.T) {
	log := `{"time":"2026-11-28T21:05:46Z","remote_addr":"10.0.0.1","x_forwarded_for":"203.0.113.7, 198.51.100.1"}` + "\n" +
		`{"time":"2026-11-28T21:05:46Z","remote_addr":"192.0.2.1","x_forwarded_for":"203.0.113.8"}` + "\n"
	keys := func(args ...string) (all []string) {
		for _, k := range results(t, log, append(args, "-limit", "1/day burst 1", "-cost", "remote_units", "-field", "remote_units=cost")...).Tracks[0].Limits[0].Worst {
			all = append(all, k.Key)
		}
		return all
	}
	log = strings.ReplaceAll(log, "}", `,"cost":2}`)
	require.ElementsMatch(t, []string{"10.0.0.1", "192.0.2.1"}, keys())
	require.ElementsMatch(t, []string{"198.51.100.1", "192.0.2.1"}, keys("-trusted", "10.0.0.0/8"))
}

// TestExit: a limit that denies too much is exit status 1.
func TestExit(t *testing.T) {
	log := access()
	for _, test := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"-limit", "20/s burst 5", "-max-denied", "0"}, 0, ""},
		{[]string{"-limit", "1/s burst 5", "-max-denied", "0.1%"}, 1, "1/s burst 5 denies 34 % of the requests, more than 0.10 %"},
		{[]string{"-limit", "1/s burst 5", "-max-denied", "50"}, 0, ""},
		{[]string{"-limit", "1/s burst 5", "-max-keys-denied", "0.1"}, 1, "1/s burst 5 denies requests of 0.50 % of the keys, more than 0.10 %"},
		{[]string{"-limit", "1/s burst 5", "-max-keys-denied", "1"}, 0, ""},
	} {
		status, _, messages, err := plan(t, log, test.args...)
		require.NoError(t, err)
		require.Equal(t, test.status, status, messages)
		require.Contains(t, messages, test.says)
	}
	for _, args := range [][]string{{"-cover", "0"}, {"-cover", "101"}, {"-limit", "100/fortnight"}, {"-where", "status"}, {"-where", "a~("}, {"-key", "a,,b"}, {"-bad", "x"}, {"-quotas", "5"}, {"-rates", "fast"}, {"-field", "a"}, {"-limits", "none.yaml"}, {"-ipv4-bits", "3"}} {
		status, _, _, err := plan(t, log, args...)
		require.Error(t, err, "%v", args)
		require.Equal(t, 2, status)
	}
	_, err := run(t.Context(), nil, nil, &bytes.Buffer{}, &bytes.Buffer{})
	require.ErrorContains(t, err, "name a log")
	_, err = run(t.Context(), []string{"no-such.log"}, nil, &bytes.Buffer{}, &bytes.Buffer{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestKeysAreHidden: with -hash no output has a key; without it no output loads anything.
func TestKeysAreHidden(t *testing.T) {
	dir := t.TempDir()
	page, data := filepath.Join(dir, "plan.html"), filepath.Join(dir, "plan.json")
	files := func(args ...string) string {
		_, table, messages, err := plan(t, access(), append(args, "-limit", "1/s burst 5", "-html", page, "-json", data)...)
		require.NoError(t, err)
		html, err := os.ReadFile(page)
		require.NoError(t, err)
		text, err := os.ReadFile(data)
		require.NoError(t, err)
		return table + messages + string(html) + string(text)
	}
	open := files()
	require.GreaterOrEqual(t, strings.Count(open, "2001:db8::/64"), 4, "tables and pictures have it")
	for _, loads := range []string{"<script", "<link", "src=", "@import", "url("} {
		require.NotContains(t, open, loads)
	}
	require.NotRegexp(t, `https?://[^w]`, open, "but for the names of XML, of www.w3.org")
	require.Equal(t, 3, strings.Count(open, "<svg"))
	require.Contains(t, open, "prefers-color-scheme: dark")
	require.Contains(t, open, "width=device-width")
	hidden := files("-hash")
	require.NotContains(t, hidden, "2001:db8")
	require.NotContains(t, hidden, "10.0.")
}

// TestTerminal: a key cannot send a terminal codes, nor the page elements.
func TestTerminal(t *testing.T) {
	log := `{"time":"2026-11-28T21:05:46Z","user":"\u001b[31m<b>evil</b>","n":9}` + "\n"
	page := filepath.Join(t.TempDir(), "plan.html")
	_, table, _, err := plan(t, log, "-key", "user", "-cost", "n", "-limit", "1/s", "-html", page)
	require.NoError(t, err)
	require.NotContains(t, table, "\x1b")
	require.Contains(t, table, `"\x1b[31m<b>evil</b>"`)
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.NotContains(t, string(html), "<b>evil")
}

// TestGatewayFile: the limits of a gateway are tried with their keys, routes and costs.
func TestGatewayFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
listen: 127.0.0.1:8080
limits:
  - {name: everybody, key: global, limit: 5/s}
routes:
  - pattern: /
    upstream: http://127.0.0.1:9000
    limits: [everybody, {name: client, key: ip, limit: 100/s burst 200}]
  - pattern: GET /export
    upstream: http://127.0.0.1:9000
    limits: [everybody, {name: export, key: [header:X-User, route], limit: sliding-log 10/min, shadow: true, cost: header:X-Units}]
`), 0o600))
	r := results(t, access(), "-limits", file, "-field", "header:X-User=remote_user", "-field", "header:X-Units=units")
	require.Len(t, r.Tracks, 3)
	everybody, client, export := r.Tracks[0], r.Tracks[1], r.Tracks[2]
	require.EqualValues(t, []int64{16000, 1}, []int64{everybody.Requests, everybody.Keys})
	require.Equal(t, "everybody", everybody.Limits[0].Name)
	require.Greater(t, everybody.Limits[0].Denied, int64(10000))
	require.EqualValues(t, []int64{10000, 200}, []int64{client.Requests, client.Keys})
	require.Zero(t, client.Limits[0].Denied)
	require.Equal(t, "100/s burst 5", client.Limits[0].Suggested)
	require.EqualValues(t, []int64{6000, 1, 36000}, []int64{export.Requests, export.Keys, export.Units})
	require.Equal(t, "header:X-User,route", export.Key)
	require.True(t, export.Limits[0].Shadow)
	require.Equal(t, `script "GET /export"`, export.Limits[0].Worst[0].Key)

	_, table, _, err := plan(t, access(), "-limits", file, "-field", "header:X-User=remote_user", "-field", "header:X-Units=units")
	require.NoError(t, err)
	require.Contains(t, table, "client: 100/s burst 200")
	_, _, _, err = plan(t, access(), "-limits", file)
	require.ErrorContains(t, err, `the key "header:X-User,route"`)
}

func TestReloadFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"search": "100/min burst 20", "login": {"rate": "5/min", "algorithm": "sliding-window"}}`), 0o600))
	r := results(t, access(), "-limits", file, "-key", "user", "-limit", "1/s")
	require.Len(t, r.Tracks, 1)
	require.Len(t, r.Tracks[0].Limits, 3)
	require.Equal(t, "login", r.Tracks[0].Limits[1].Name)
}

// TestFiles: several logs, compressed or not, are one.
func TestFiles(t *testing.T) {
	lines := strings.SplitAfter(access(), "\n")
	dir := t.TempDir()
	var names []string
	for i, part := range [][]string{lines[9000:], lines[:4000], lines[4000:9000]} {
		name := filepath.Join(dir, fmt.Sprint("access.log.", i))
		var b bytes.Buffer
		if z := gzip.NewWriter(&b); i == 1 {
			_, err := z.Write([]byte(strings.Join(part, "")))
			require.NoError(t, err)
			require.NoError(t, z.Close())
		} else {
			b.WriteString(strings.Join(part, ""))
		}
		require.NoError(t, os.WriteFile(name, b.Bytes(), 0o600))
		names = append(names, name)
	}
	var whole, merged bytes.Buffer
	_, err := run(t.Context(), []string{"-limit", "1/s burst 5", "-"}, strings.NewReader(access()), &whole, &bytes.Buffer{})
	require.NoError(t, err)
	_, err = run(t.Context(), append([]string{"-limit", "1/s burst 5"}, names...), nil, &merged, &bytes.Buffer{})
	require.NoError(t, err)
	require.Equal(t, whole.String(), merged.String())
}

func TestProgress(t *testing.T) {
	one := &file{size: 1000}
	one.read.Store(250)
	require.Equal(t, " 25 %  5000 lines, 500 a second, 30s left", progress([]*file{one}, 5000, 10*time.Second))
	require.Equal(t, "5000 lines, 500 a second", progress([]*file{one, {}}, 5000, 10*time.Second), "the size of a pipe is unknown")
	showProgress(&bytes.Buffer{}, false, nil, nil)()
}
