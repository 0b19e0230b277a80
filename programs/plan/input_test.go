package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNothingTried: a run that judges nothing is an error.
func TestNothingTried(t *testing.T) {
	file := gatewayFile(t, `
routes:
  - {pattern: /nowhere, upstream: UP, limits: [{name: a, key: ip, limit: 10/min}]}
`)
	for _, args := range [][]string{{"-where", "user=nobody"}, {"-limits", file}, {"-max-denied", "1"}, {"-max-keys-denied", "1"}} {
		status, _, _, err := plan(t, access(), args...)
		require.Error(t, err, "%v", args)
		require.Equal(t, 2, status)
	}
}

// endless is a log whose reader cancels after some lines, and may wait for more for ever.
type endless struct {
	cancel context.CancelFunc
	text   string
	reads  int
	waits  bool
}

func (e *endless) Read(p []byte) (int, error) {
	if e.reads++; e.reads == 1000 {
		e.cancel()
	}
	if e.waits && e.reads > 1000 {
		select {}
	}
	return copy(p, e.text), nil
}

// TestInterrupt: an interrupt ends the run, without a result.
func TestInterrupt(t *testing.T) {
	for _, where := range []string{"path=/", "path=/other"} {
		for _, waits := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			var out bytes.Buffer
			done := make(chan error, 1)
			go func() {
				_, err := run(ctx, []string{"-where", where, "-q", "-"}, &endless{cancel: cancel, text: lines(`"uri":"/"`), waits: waits}, &out, io.Discard)
				done <- err
			}()
			select {
			case err := <-done:
				require.ErrorContains(t, err, "interrupted")
			case <-time.After(20 * time.Second):
				t.Fatal("it goes on")
			}
			require.Empty(t, out.String())
			cancel()
		}
	}
}

// TestFarAhead: one line with a wrong year is counted, and makes no other line late; a gap of days is none.
func TestFarAhead(t *testing.T) {
	log := strings.SplitAfter(access(), "\n")
	wrong := strings.Replace(log[0], "2026", "2199", 1)
	for _, at := range []int{0, 8000} {
		text := strings.Join(log[:at], "") + wrong + strings.Join(log[at:], "")
		r := results(t, text)
		require.EqualValues(t, []int64{1, 0}, []int64{r.Unreadable, r.Late})
		require.Contains(t, r.Samples[0], "time is 2199-11-28T")
		require.EqualValues(t, 2026, r.Tracks[0].To.Year())
		require.EqualValues(t, 16000, r.Tracks[0].Requests)
	}
	r := results(t, strings.Join(log[:8000], "")+strings.ReplaceAll(strings.Join(log[8000:], ""), "2026-11", "2026-12"))
	require.EqualValues(t, []int64{0, 0}, []int64{r.Unreadable, r.Late})

	// Two lines are believed; a picture of centuries has few points, and late records are not kept.
	page := filepath.Join(t.TempDir(), "plan.html")
	_, table, _, err := plan(t, strings.Join(log[:8000], "")+wrong+wrong+strings.Join(log[8000:], ""), "-bad", "51", "-limit", "1/s burst 5", "-html", page)
	require.NoError(t, err)
	require.Contains(t, table, "8 000 records out of order by more than -window, decided at the time of the latest record before")
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Less(t, len(html), 500_000)
}

// TestWholeSeconds: the report says what whole seconds mean.
func TestWholeSeconds(t *testing.T) {
	require.Contains(t, fmt.Sprint(results(t, strings.ReplaceAll(lines(`"uri":"/"`), ".5Z", "Z")).Notes), "whole seconds: a burst may be off by what its rate admits in a second, at 10/s by up to 10")
	require.Empty(t, results(t, lines(`"uri":"/"`)).Notes)
}

// TestHiddenLines: with -hash no message has the text of a line.
func TestHiddenLines(t *testing.T) {
	for _, log := range []string{
		lines(`"uri":"/"`) + `{"time":"secret-key"}` + "\n" + `{"time":"2026-11-28T21:05:46Z","request_time":"secret-key"}` + "\n",
		strings.Repeat("secret-key\n", 50),
		"time,user\n2026-11-28T21:05:46Z,a\n" + strings.Repeat("secret-key,1,2\n", 9),
	} {
		for _, most := range []string{"1", "90"} {
			_, table, messages, err := plan(t, log, "-hash", "-bad", most)
			require.NotContains(t, fmt.Sprint(table, messages, err), "secret-key")
		}
	}
	_, table, _, err := plan(t, lines(`"uri":"/"`)+"\n{\n", "-hash", "-bad", "90")
	require.NoError(t, err)
	require.Contains(t, table, "standard input:3: hidden")
}

// TestSuggestedIsOfTheSameKind: the suggestion beside a limit is of its own algorithm and windows.
func TestSuggestedIsOfTheSameKind(t *testing.T) {
	one := results(t, access(), "-limit", "fixed-window 100/day", "-limit", "fixed-window 100/day zone UTC", "-limit", "sliding-window 9/min cells 2", "-limit", "sliding-window 9/min").Tracks[0]
	var all []string
	for _, l := range one.Limits {
		all = append(all, l.Suggested)
	}
	require.Equal(t, []string{"", "fixed-window 6000/day zone UTC", "", "sliding-window 601/min"}, all)
}

// TestHeaderNames: the case of a header's name does not matter.
func TestHeaderNames(t *testing.T) {
	log := lines(`"headers":{"X-Api-Key":"a"}`, `"headers":{"X-Api-Key":"b"}`, `"headers":{"x-api-key":"b"}`)
	for _, key := range []string{"header:X-API-Key", "header:x-api-key", "header:X-Api-Key"} {
		require.Equal(t, []int64{3, 3, 2}, figures(results(t, log, "-key", key).Tracks[0]))
		require.Equal(t, []int64{3, 3, 1}, figures(results(t, log, "-key", key, "-field", "header:x-API-key=method").Tracks[0]))
	}
}

// TestSilentProxies: a proxy whose forwarded addresses the log lacks is reported.
func TestSilentProxies(t *testing.T) {
	r := results(t, lines(`"uri":"/"`, `"uri":"/","x_forwarded_for":"198.51.100.1"`), "-trusted", "203.0.113.0/24")
	require.Contains(t, fmt.Sprint(r.Notes), "had no forwarded address, so that their key is the proxy's: 1.")
}

// TestOutcomes: help is no error, a full disk is one, and a limit in shadow mode fails no CI.
func TestOutcomes(t *testing.T) {
	status, _, _, err := plan(t, "", "-h")
	require.NoError(t, err)
	require.Zero(t, status)

	_, err = run(t.Context(), []string{"-q", "-"}, strings.NewReader(access()), full{}, io.Discard)
	require.ErrorContains(t, err, "no space left")

	file := gatewayFile(t, `
routes:
  - {pattern: /, upstream: UP, limits: [{name: a, key: ip, limit: 1/h, shadow: true}]}
`)
	status, _, _, err = plan(t, access(), "-limits", file, "-max-denied", "1", "-max-keys-denied", "1")
	require.NoError(t, err)
	require.Zero(t, status)
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestLargeCosts: sums of large costs do not turn around.
func TestLargeCosts(t *testing.T) {
	page := filepath.Join(t.TempDir(), "plan.html")
	one := results(t, lines(strings.Split(strings.Repeat(`"n":4e18;`, 5)+`"n":1`, ";")...), "-cost", "n", "-html", page).Tracks[0]
	require.EqualValues(t, int64(math.MaxInt64), one.Units)
	for _, s := range one.Suggestions {
		require.GreaterOrEqual(t, s.Minute, int64(0))
	}
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.NotContains(t, string(html), "-9 223")
}

func TestWrongFlags(t *testing.T) {
	for _, args := range [][]string{{"-window", "-1s"}, {"-window", "9000h"}, {"-keys", "-1"}, {"-cover", "NaN"}, {"-duration-unit", "0s"}, {"-duration-unit", "h"}} {
		status, _, _, err := plan(t, access(), append(args, "-limit", "1/s")...)
		require.Error(t, err, "%v", args)
		require.Equal(t, 2, status)
	}
}

// TestFieldNames: names of fields send a terminal no codes.
func TestFieldNames(t *testing.T) {
	_, _, _, err := plan(t, `{"time":"2026-11-28T21:05:46Z","\u001b[31m":1}`+"\n", "-key", "user")
	require.ErrorContains(t, err, `"\x1b[31m"`)
	_, _, _, err = plan(t, `{"\u001b[31m":1}`+"\n")
	require.NotContains(t, err.Error(), "\x1b")
}
