package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSetter: the report names the key that sets the starred limit, and what the others need.
func TestSetter(t *testing.T) {
	var log []string
	for i := range 40 {
		from := fmt.Sprintf(`"uri":"/","remote_addr":"203.0.113.%d"`, i)
		for range map[int]int{20: 30, 25: 9}[i] + 1 {
			log = append(log, from)
		}
	}
	text := strings.ReplaceAll(lines(log...), `"remote_addr":"203.0.113.1",`, "")
	args := []string{"-rates", "1/h 1/min", "-cover", "97.5"}
	_, table, _, err := plan(t, text, args...)
	require.NoError(t, err)
	require.Contains(t, table, "* 1/h burst 10 admits the least in a minute. Set by 203.0.113.25 (10 requests); without it 1/h burst 1. It would have denied nothing to 39 keys; 1 of 40 would have been denied a request:\n")
	best := results(t, text, args...).Tracks[0].Suggestions[0]
	require.Equal(t, "203.0.113.25", best.SetBy.Key)
	require.Equal(t, "1/h burst 1", best.Without)
	_, table, _, err = plan(t, text, "-rates", "1/h", "-cover", "95")
	require.NoError(t, err)
	require.NotContains(t, table, "Set by", "38 keys need the same")
	require.Contains(t, table, "2 of 40 would have been denied a request:\n")
	_, table, _, err = plan(t, text, "-rates", "1/h", "-cover", "95", "-keys", "1")
	require.NoError(t, err)
	require.Contains(t, table, "2 of 40 would have been denied a request, among them:\n")
	_, table, _, err = plan(t, text, "-rates", "1/h", "-cover", "95", "-keys", "0")
	require.NoError(t, err)
	require.Contains(t, table, "2 of 40 would have been denied a request.\n")
}

// TestUnits: with a cost the report shows units, rates for them, requests that can never pass, and rates without a limit.
func TestUnits(t *testing.T) {
	log := lines(`"n":1`, `"n":50`, `"n":9000000`)
	_, table, _, err := plan(t, log, "-cost", "n", "-limit", "1/s burst 40")
	require.NoError(t, err)
	require.Contains(t, table, "3 requests (9 000 051 units) of 1 key (address)")
	require.Contains(t, table, "1/s burst 40: 2 requests cost more than it can ever admit: raise it above the largest cost")
	require.Contains(t, table, "100000/s burst 9000000")
	_, table, _, err = plan(t, lines(`"n":40000000`), "-cost", "n", "-rates", "1/s 1/min 1000/s")
	require.NoError(t, err)
	require.Contains(t, table, "no burst is large enough at 1/min, 1/s: choose a higher rate")
	require.Contains(t, table, "1000/s burst 40000000")
	_, table, _, err = plan(t, lines(`"n":4`))
	require.NoError(t, err)
	require.NotContains(t, table, "unit")
	require.NotContains(t, table, "2000/s")
}

// TestMessages: errors of flags come without the usage; those of files name what is wrong with them.
func TestMessages(t *testing.T) {
	for _, args := range [][]string{{"-limit", "x"}, {"-no-such-flag"}, {"-keys", "x"}, {}} {
		var messages bytes.Buffer
		status, err := run(t.Context(), args, nil, &messages, &messages)
		require.ErrorContains(t, err, "; plan -h lists the flags")
		require.Equal(t, 2, status)
		require.Empty(t, messages.String())
	}
	dir := t.TempDir()
	_, err := run(t.Context(), []string{"-q", dir}, nil, &bytes.Buffer{}, &bytes.Buffer{})
	require.EqualError(t, err, dir+" is a folder: name the files in it")

	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err = z.Write([]byte(access()))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	for _, at := range []int{5, b.Len() / 2} {
		for _, hash := range []string{"-q", "-hash"} {
			name := filepath.Join(dir, "cut.gz")
			require.NoError(t, os.WriteFile(name, b.Bytes()[:at], 0o600))
			_, err = run(t.Context(), []string{"-q", hash, name}, nil, &bytes.Buffer{}, &bytes.Buffer{})
			require.ErrorContains(t, err, "the compressed file is cut off")
		}
	}
}

// TestPlainFigures: numbers are as they were given, and columns have headings.
func TestPlainFigures(t *testing.T) {
	_, out, _, err := plan(t, access(), "-json", "-", "-q")
	require.NoError(t, err)
	require.Contains(t, out, `"cover": 0.999,`)
	_, table, _, err := plan(t, access(), "-limit", "1/s")
	require.NoError(t, err)
	require.Regexp(t, `limit +denied +of requests +keys denied +of keys +longest lockout`, table)
}

// pageOf is the page about a log.
func pageOf(t *testing.T, log string, args ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "plan.html")
	_, _, _, err := plan(t, log, append(args, "-html", name)...)
	require.NoError(t, err)
	html, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(html)
}

// TestPage: what could not be read comes first, axes say what they are, and there is no picture of nothing.
func TestPage(t *testing.T) {
	log := access() + "{\n"
	html := pageOf(t, log, "-limit", "1000/s burst 1000")
	require.NotContains(t, html, "Denied per")
	require.Contains(t, html, "requests in 5s")
	require.Contains(t, html, "2026-11-28, UTC")
	require.Contains(t, html, "of all keys together")
	require.Contains(t, html, "stroke-dasharray", "of two curves that are equal")
	require.Less(t, strings.Index(html, "could not be read"), strings.Index(html, "16 000 requests"))
	require.Regexp(t, `pre \{[^}]*white-space: pre-wrap`, html)
	_, table, _, err := plan(t, log)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(table, "1 of 16 001 lines could not be read; the first:\n"), table[:100])
	require.Contains(t, pageOf(t, access(), "-cost", "units"), "units of cost in ")
}
