package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOutOfOrder: more late records than -bad allows are an error that names the remedy; a few are a note.
func TestOutOfOrder(t *testing.T) {
	log := strings.SplitAfter(strings.TrimSpace(access()), "\n")
	log[len(log)-1] += "\n"
	slices.Reverse(log)
	reversed := strings.Join(log, "")
	for _, where := range []string{"path~.", "user=script"} {
		status, _, _, err := plan(t, reversed, "-where", where)
		require.ErrorContains(t, err, " %) are out of order by more than 30s, more than 1 %: sort the log, give -window (up to 24h), or raise -bad")
		require.Equal(t, 2, status)
	}
	sorted := results(t, access(), "-limit", "1/s burst 5")
	r := results(t, reversed, "-limit", "1/s burst 5", "-window", "1h")
	require.Zero(t, r.Late)
	require.Equal(t, sorted.Tracks[0].Suggestions, r.Tracks[0].Suggestions)
	require.Positive(t, results(t, reversed, "-bad", "100").Late)
}

// TestUnknownFields: a field that no line has is an error wherever it is named, and lists the fields of the log.
func TestUnknownFields(t *testing.T) {
	for _, args := range [][]string{
		{"-field", "duration=nope"}, {"-field", "address=nope", "-key", "user"}, {"-field", "header:X-User=nope"},
		{"-where", "nope=1"}, {"-where", "nope!=1"}, {"-where", "nope!~x", "-where", "user=script"}, {"-cost", "nope"}, {"-cost", "nope", "-bad", "100"},
	} {
		_, _, _, err := plan(t, access(), args...)
		require.ErrorContains(t, err, "no line has nope, which "+args[0]+" names. The log has: ", "%v", args)
		require.ErrorContains(t, err, "method, path, status, time, user, remote_addr,")
	}
	for _, args := range [][]string{{"-field", "user=remote_user"}, {"-field", "path=uri"}, {"-where", "address~1"}, {"-where", "query:x=1"}, {"-cost", "duration"}} {
		results(t, access(), args...)
	}
	common := `10.0.0.1 - - [28/Nov/2026:21:50:00 +0000] "GET / HTTP/1.1" 200 - "-" "x" -` + "\n"
	_, _, _, err := plan(t, common, "-where", "host=shop")
	require.ErrorContains(t, err, "no line has host, which -where names")
	results(t, common, "-field", "duration=extra1", "-field", "user=remote_user")
	_, _, _, err = plan(t, "no log\n", "-where", "nope=1")
	require.ErrorContains(t, err, "name the format by -format")
}

// TestPartlyPriced: records without the cost are an error of their own above the share of -bad.
func TestPartlyPriced(t *testing.T) {
	log := lines(`"n":2`, `"n":"many"`, `"m":1`, `"n":2`)
	_, _, _, err := plan(t, log, "-cost", "n")
	require.ErrorContains(t, err, "2 of 4 records have no cost that can be read, more than 1 %: choose its field by -cost, leave the records out by -where, or raise -bad; the first are\n  standard input:2: n is \"many\", want a cost of 0 or more")
	require.EqualValues(t, 2, results(t, log, "-cost", "n", "-bad", "50").Unreadable)
}

// TestKeylessFile: a log without the key is an error beside one that has it, unless it is small.
func TestKeylessFile(t *testing.T) {
	dir := t.TempDir()
	with, without := filepath.Join(dir, "with.log"), filepath.Join(dir, "without.log")
	require.NoError(t, os.WriteFile(with, []byte(access()), 0o600))
	require.NoError(t, os.WriteFile(without, []byte(strings.ReplaceAll(access(), "remote_user", "nothing")), 0o600))
	var out bytes.Buffer
	status, err := run(t.Context(), []string{"-q", "-key", "user", with, without}, nil, &out, &out)
	require.ErrorContains(t, err, without+`: no line has the field of the key "user". The log has: `)
	require.Equal(t, 2, status)
	require.NoError(t, os.WriteFile(without, []byte(strings.ReplaceAll(lines(`"uri":"/"`), "T21", "T09")), 0o600))
	_, err = run(t.Context(), []string{"-q", "-key", "user", with, without}, nil, &out, &out)
	require.NoError(t, err)
	require.Contains(t, out.String(), "1 record without user (0.006 %) was left out")
}

// TestNotTried: a limit on requests in flight without durations was not tried, and passes no bound.
func TestNotTried(t *testing.T) {
	log := strings.ReplaceAll(access(), "request_time", "nothing")
	file := gatewayFile(t, `
routes:
  - {pattern: /, upstream: UP, in_flight: 2}
`)
	for _, args := range [][]string{{"-in-flight", "5"}, {"-limits", file}} {
		name := map[string]string{"-in-flight": "5 in flight", "-limits": "/ in_flight: 2 in flight in total"}[args[0]]
		status, table, _, err := plan(t, log, append(args, "-max-denied", "0.1")...)
		require.EqualError(t, err, name+" was not tried, since the log has no durations: name the field by -field duration=FIELD")
		require.Equal(t, 2, status)
		require.Regexp(t, name+" +not tried", table)
		r := results(t, log, args...)
		require.True(t, r.Tracks[0].Limits[0].NotTried)
		require.Equal(t, []string{err.Error()}, r.Notes)
	}
}

// TestSharedKey: a note about records that share one key names its limit.
func TestSharedKey(t *testing.T) {
	file := gatewayFile(t, `
routes:
  - {pattern: /, upstream: UP, limits: [{name: a, key: header:X-User, limit: 10/min}, {name: b, key: header:X-User, limit: 10/h}]}
`)
	notes := fmt.Sprint(results(t, lines(`"uri":"/"`, `"uri":"/","headers":{"X-User":"ann"}`), "-limits", file).Notes)
	require.Contains(t, notes, "a: 1 record without header:X-User (50 %) shares one key")
	require.Contains(t, notes, "b: 1 record without header:X-User (50 %) shares one key")
}

// TestFlagsOfTheCommandLine: -key and -cost do not reach the limits of a file of the gateway.
func TestFlagsOfTheCommandLine(t *testing.T) {
	file := gatewayFile(t, `
routes:
  - {pattern: /, upstream: UP, limits: [{name: a, key: ip, limit: 10/min}]}
`)
	for _, args := range [][]string{{"-cost", "units"}, {"-key", "user"}} {
		_, _, _, err := plan(t, access(), append(args, "-limits", file)...)
		require.ErrorContains(t, err, "a limit of that file names its own: cost: header:NAME, and -field header:NAME=FIELD")
		results(t, access(), append(args, "-limits", file, "-limit", "1/s")...)
	}
}
