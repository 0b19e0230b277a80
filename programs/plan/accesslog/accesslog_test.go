package accesslog_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/programs/plan/accesslog"
)

// want is what a record has.
type want map[string]string

func (w want) check(t *testing.T, r *accesslog.Record) {
	t.Helper()
	for name, value := range w {
		switch name {
		case "arrival":
			require.Equal(t, value, r.Arrival.UTC().Format(time.RFC3339Nano))
		case "duration":
			require.Equal(t, value, r.Duration.String())
		default:
			got, ok := r.Get(name)
			require.Equal(t, value != "", ok, "%s is %q; the fields are %v", name, got, r.Fields())
			require.Equal(t, value, got, name)
		}
	}
}

// read returns what check has seen of a log: each line, in order, and the lines that cannot be read.
func read(t *testing.T, name string, in io.Reader, c accesslog.Config, lines ...want) (bad []string) {
	t.Helper()
	c.Bad = func(e *accesslog.Error) { bad = append(bad, e.Error()) }
	log, err := accesslog.NewReader(name, in, c)
	require.NoError(t, err)
	for i := 0; ; i++ {
		r, err := log.Next()
		if errors.Is(err, io.EOF) {
			require.GreaterOrEqual(t, i, len(lines), "fewer lines; %v", bad)
			return bad
		}
		require.NoError(t, err)
		if i < len(lines) {
			lines[i].check(t, r)
		}
	}
}

func TestFormats(t *testing.T) {
	for file, test := range map[string]struct {
		config accesslog.Config
		lines  []want
	}{
		"nginx-combined.log": {lines: []want{{
			"arrival": "2026-11-28T21:50:00Z", "duration": "0s", "address": "127.0.0.1", "user": "alice", "method": "GET", "path": "/", "query": "q=1", "query:q": "1",
			"status": "200", "bytes": "3", "header:User-Agent": `curl "quoted" agent`, "header:Referer": "", "host": "", "forwarded": "",
		}, {"query:q": "2", "query:p": ""}, {}, {}, {"path": "/missing%22path", "user": "", "header:Referer": `http://ref/"x`}, {"method": "POST", "status": "405"}}},
		"nginx-main.log":  {config: accesslog.Config{Fields: map[string]string{"forwarded": "extra1"}}, lines: []want{{"forwarded": "203.0.113.7", "extra1": "203.0.113.7", "extra2": ""}, {}, {}, {}, {"forwarded": ""}}},
		"nginx-timed.log": {config: accesslog.Config{Fields: map[string]string{"duration": "extra1"}}, lines: []want{{"duration": "0s", "extra1": "0.000"}}},
		"nginx-json.log": {lines: []want{{
			"arrival": "2026-11-28T21:50:00.051Z", "duration": "0s", "address": "127.0.0.1", "user": "alice", "method": "GET", "path": "/", "status": "200", "header:X-Api-Key": "k1",
			"user_agent": `curl "quoted" agent`,
		}}},
		"apache-combined.log": {lines: []want{
			{"arrival": "2026-11-28T21:50:16Z", "method": "", "path": "", "request": "\x16\x03\x01\x02garbage", "status": "400"},
			{"path": `/a"b`, "header:User-Agent": `back\slash "q"`}, {"method": "GET", "path": "/old"}, {"address": "127.0.0.1", "user": "", "query:q": "1"},
		}},
		"apache-timed.log": {config: accesslog.Config{Fields: map[string]string{"duration": "extra1"}, DurationUnit: time.Microsecond}, lines: []want{
			{"duration": "219µs"}, {"arrival": "2026-11-29T01:43:31Z", "duration": "1.339934s"}, {"arrival": "2026-11-29T01:43:35Z"},
		}},
		"apache-vhost.log":  {lines: []want{{"host": "localhost:80", "address": "127.0.0.1", "status": "400"}, {"path": `/a"b`}}},
		"apache-common.log": {lines: []want{{"path": "/", "query": "q=1", "status": "404", "header:User-Agent": ""}}},
		"caddy.json": {lines: []want{{
			"arrival": "2026-11-28T21:50:00.399645962Z", "duration": "2.824438ms", "address": "127.0.0.1", "user": "", "method": "GET", "host": "127.0.0.1:18083", "path": "/", "query:q": "1",
			"status": "200", "bytes": "3", "header:X-Api-Key": "k1", "forwarded": "203.0.113.7", "request.headers.User-Agent": `curl "quoted" agent`,
		}, {}, {}, {}, {"status": "404"}, {"method": "POST"}}},
		"traefik.json": {lines: []want{
			{"arrival": "2026-11-28T21:05:40.189830187Z", "duration": "3.454189ms", "address": "203.0.113.9", "user": "alice", "path": "/api/items", "query:page": "2", "status": "200", "route": "shop@docker", "header:X-Api-Key": "k1", "host": "shop.example.com"},
			{"address": "2001:db8:7::9", "user": "", "route": "", "method": "HEAD"},
		}},
		"traefik-common.log": {config: accesslog.Config{Fields: map[string]string{"duration": "extra4", "route": "extra2"}}, lines: []want{{
			"arrival": "2026-11-28T21:05:40Z", "duration": "3ms", "route": "shop@docker", "user": "alice",
		}}},
		"envoy.json": {lines: []want{
			{"arrival": "2026-11-28T21:05:46.421Z", "duration": "420ms", "address": "203.0.113.9", "forwarded": "203.0.113.9", "path": "/api/items", "status": "200", "route": "default", "host": "shop.example.com"},
			{"arrival": "2026-11-28T21:05:47.573Z", "duration": "3ms", "address": "2001:db8:7::9", "path": "/reviews/0", "host": "shop.example.com", "forwarded": "2001:db8:7::9"},
		}},
		"envoy.log": {lines: []want{{
			"arrival": "2026-11-28T21:05:46.421Z", "duration": "226ms", "address": "", "forwarded": "203.0.113.9", "method": "POST", "path": "/api/v1/orders", "status": "204", "host": "shop.example.com",
		}}},
		"gateway.log": {lines: []want{{
			"arrival": "2026-11-28T21:05:46.171Z", "duration": "250ms", "address": "203.0.113.9", "path": "/a b", "route": "/", "status": "200", "peer": "203.0.113.9:48499", "policy": "",
		}}},
		"table.csv": {lines: []want{
			{"arrival": "2026-11-28T21:05:44.5Z", "duration": "1.5s", "customer": `Miller; Sons "Ltd"`, "tokens": "120.5", "path": "/v1/chat"}, {"customer": "acme", "duration": "20ms"},
		}},
	} {
		t.Run(file, func(t *testing.T) {
			f, err := os.Open(filepath.Join("testdata", file))
			require.NoError(t, err)
			defer f.Close()
			require.Empty(t, read(t, file, f, test.config, test.lines...))
		})
	}
	entries, err := os.ReadDir("testdata")
	require.NoError(t, err)
	require.Len(t, entries, 16, "each sample has a row, and there is a README")
}

// TestSlog: the lines of both handlers, as they are written today.
func TestSlog(t *testing.T) {
	at := time.Date(2026, 11, 28, 21, 5, 46, 421_000_000, time.UTC)
	for name, handler := range map[string]func(io.Writer) slog.Handler{
		"json": func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
		"text": func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
	} {
		var b bytes.Buffer
		r := slog.NewRecord(at, slog.LevelInfo, "request done", 0)
		r.AddAttrs(slog.String("user", `a "b" c`), slog.Duration("duration", 1500*time.Millisecond), slog.Group("http", slog.String("method", "GET"), slog.Int("status", 200)), slog.String("path", "/x?y=1"))
		require.NoError(t, handler(&b).Handle(t.Context(), r))
		require.Empty(t, read(t, name, &b, accesslog.Config{Fields: map[string]string{"method": "http.method"}}, want{
			"arrival": "2026-11-28T21:05:44.921Z", "duration": "1.5s", "user": `a "b" c`, "method": "GET", "http.status": "200", "path": "/x", "query:y": "1",
		}), name)
	}
}

func TestGzip(t *testing.T) {
	plain, err := os.ReadFile("testdata/nginx-combined.log")
	require.NoError(t, err)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err = z.Write(plain)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	whole := b.Bytes()
	require.Empty(t, read(t, "log.gz", bytes.NewReader(whole), accesslog.Config{}, want{"user": "alice"}))

	log, err := accesslog.NewReader("log.gz", bytes.NewReader(whole[:len(whole)-20]), accesslog.Config{})
	require.NoError(t, err)
	for err == nil {
		_, err = log.Next()
	}
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "the file is cut off")
	require.ErrorContains(t, err, "log.gz:")
}

const good = `10.0.0.1 - - [28/Nov/2026:21:50:00 +0000] "GET / HTTP/1.1" 200 3 "-" "-"` + "\n"

func TestBadLines(t *testing.T) {
	for line, says := range map[string]string{
		`10.0.0.1 - - "GET / HTTP/1.1" 200 3 "-" "-"`:                               "no time in [brackets]",
		`10.0.0.1 - - [28/Nov/2026:21:50:00 +0000`:                                  "no closing bracket",
		`10.0.0.1 - - [28/Foo/2026:21:50:00 +0000] "GET / HTTP/1.1" 200 3 "-" "-"`:  `time is "28/Foo`,
		`10.0.0.1 - - [28/Nov/2026:25:50:00 +0000] "GET / HTTP/1.1" 200 3 "-" "-"`:  `time is "28/Nov/2026:25`,
		`10.0.0.1 - - [31/Feb/2026:21:50:00 +0000] "GET / HTTP/1.1" 200 3 "-" "-"`:  `time is "31/Feb`,
		`10.0.0.1 - - [x8/Nov/2026:21:50:00 +0000] "GET / HTTP/1.1" 200 3 "-" "-"`:  `time is "x8/Nov`,
		`10.0.0.1 - - [28/Nov/2026:21:50:00 +0000] "GET / HTTP/1.1" 200 3 "-" "cut`: "a quote is not closed",
		`10.0.0.1 - - [28/Nov/2026:21:50:00 +0000] "GET / HTT`:                      "a quote is not closed",
		`10.0.0.1 - - [28/Nov/2026:21:50:00 +0000] "GET / HTTP/1.1" OK 3 "-" "-"`:   `status is "OK"`,
		`10.0.0.1 [28/Nov/2026:21:50:00 +0000] "GET / HTTP/1.1" 200 3`:              "fewer than three fields",
		strings.Repeat("x", accesslog.MaxLine+10):                                   "longer than 1048576 bytes",
		"\x00\x00\x00": "no time in [brackets]",
	} {
		bad := read(t, "log", strings.NewReader(good+line+"\n\n"+good), accesslog.Config{}, want{}, want{"address": "10.0.0.1"})
		require.Len(t, bad, 1, line)
		require.Contains(t, bad[0], "log:2: ")
		require.Contains(t, bad[0], says)
	}
	for line, says := range map[string]string{
		`{"time":"2026-11-28T21:05:46Z","a":`: "not an object of JSON",
		`[1,2]`:                               "not an object of JSON",
		`{}`:                                  "an object without fields",
		`{"a":1,"b":{"c":2}}`:                 "no time; it has the fields a, b.c",
		`{"time":"yesterday"}`:                `time is "yesterday"`,
		`{"time":12}`:                         `time is "12"`,
		`{"msec":1e999,"a":1}`:                `time is "1e999"`,
		`{"msec":179590260x.1}`:               "not an object of JSON",
		`{"msec":1795902600.05,"request_time":"x"}`: `request_time is "x"`,
	} {
		bad := read(t, "log", strings.NewReader(`{"time":"2026-11-28T21:05:46Z"}`+"\n"+line+"\n"), accesslog.Config{}, want{})
		require.Len(t, bad, 1, line)
		require.Contains(t, bad[0], says)
	}
	for line, says := range map[string]string{`"a,2`: "a quote is not closed", `"a"b,2`: "a quote ends within", `a`: "1 values, the first line has 2", "a,b,c": "3 values"} {
		bad := read(t, "log", strings.NewReader("time,x\n2026-11-28T21:05:46Z,1\n"+line+"\n"), accesslog.Config{}, want{"x": "1"})
		require.Len(t, bad, 1, line)
		require.Contains(t, bad[0], says)
	}
	for line, says := range map[string]string{`time=2026-11-28T21:05:46Z a="b`: "a quote is not closed", "just words": "not pairs"} {
		bad := read(t, "log", strings.NewReader("time=2026-11-28T21:05:46Z a=b\n"+line+"\n"), accesslog.Config{}, want{"a": "b"})
		require.Len(t, bad, 1, line)
		require.Contains(t, bad[0], says)
	}
}

// TestUnknownFormat: a few lines before the first one that can be recognized are skipped; a log of which none
// is recognized is an error that names the remedy.
func TestUnknownFormat(t *testing.T) {
	bad := read(t, "log", strings.NewReader("half a line\n"+good), accesslog.Config{}, want{"address": "10.0.0.1"})
	require.Len(t, bad, 1)

	log, err := accesslog.NewReader("log", strings.NewReader(strings.Repeat("nothing\n", 30)), accesslog.Config{})
	require.NoError(t, err)
	_, err = log.Next()
	require.ErrorContains(t, err, "name it by -format")
	log, err = accesslog.NewReader("log", strings.NewReader(strings.Repeat(good, 30)), accesslog.Config{Format: "clf"})
	require.NoError(t, err)
	_, err = log.Next()
	require.ErrorContains(t, err, "name it by -format")
}

// TestApacheTimes: %t of Apache is the arrival, and %D has microseconds, which the log does not say.
func TestApacheTimes(t *testing.T) {
	const line = `10.0.0.1 - - [28/Nov/2026:21:50:00 +0000] "GET / HTTP/1.1" 200 3 "-" "-" 2500000` + "\n"
	fields := map[string]string{"duration": "extra1"}
	require.Empty(t, read(t, "log", strings.NewReader(line), accesslog.Config{Fields: fields, DurationUnit: time.Microsecond}, want{
		"arrival": "2026-11-28T21:50:00Z", "duration": "2.5s",
	}))
	bad := read(t, "log", strings.NewReader(line), accesslog.Config{Fields: fields})
	require.Len(t, bad, 1)
	require.Contains(t, bad[0], `extra1 is "2500000": give its unit by -duration-unit`)
}

// TestByteOrderMark: a mark at the start belongs to no line.
func TestByteOrderMark(t *testing.T) {
	for _, text := range []string{`{"time":"2026-11-28T21:05:46Z"}`, good, "time,x\n2026-11-28T21:05:46Z,1", "time=2026-11-28T21:05:46Z"} {
		require.Empty(t, read(t, "log", strings.NewReader("\ufeff"+text), accesslog.Config{}, want{}))
	}
}

// FuzzLines: no line makes a reader panic.
func FuzzLines(f *testing.F) {
	for _, seed := range []string{good, `{"time":"2026-11-28T21:05:46Z","a":[{"b":1}]}`, "time,x\n1,2\n", "a=b c=\"d\\", `[2016-04-15T20:17:00.310Z] "POST / HTTP/2" 204 - 154 0 226 100 "-" "-" "-" "-" "-"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, format := range []string{"", "combined", "json", "text", "csv", "envoy"} {
			log, err := accesslog.NewReader("log", strings.NewReader(text), accesslog.Config{Format: format})
			for err == nil {
				var r *accesslog.Record
				if r, err = log.Next(); err == nil {
					r.Fields()
					for _, name := range []string{"address", "user", "path", "query:q", "header:X-A", "a.b", "extra1"} {
						r.Get(name)
					}
				}
			}
		}
	})
}
