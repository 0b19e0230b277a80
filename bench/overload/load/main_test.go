package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/bench/loadgen"
)

// serve answers two requests at a time, after a moment, and rejects the others.
func serve(t *testing.T) string {
	t.Helper()
	places := make(chan struct{}, 2)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case places <- struct{}{}:
			time.Sleep(5 * time.Millisecond)
			<-places
			fmt.Fprintln(w, "done")
		default:
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/"
}

// TestRun: it finds a capacity, prints every second, and sums up three parts in
// which every request is accounted for.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(&out, []string{"-url", serve(t), "-times", "5", "-seconds", ".7", "-slo", "1m", "-patience", "1m"}))
	require.Regexp(t, `^capacity [1-9]\d*/s; an answer counts within 1m0s\n`, out.String())
	require.Regexp(t, `(?m)^ +\d+s  load \d\.\d\dx +\d+ in time \( *\d+ %\) +\d+ late +\d+ rejected +\d+ gave up$`, out.String())
	_, table, ok := strings.Cut(out.String(), "\n\n")
	require.True(t, ok)
	rows := strings.Split(strings.TrimSpace(table), "\n")
	require.Len(t, rows, 4)
	for i, load := range []string{"0.85x", "5.00x", "0.85x"} {
		require.Equal(t, load, strings.Fields(rows[i+1])[0])
	}
	rejected := strings.Fields(rows[2])[4]
	require.NotEqual(t, "0", rejected, table)
}

func TestCounts(t *testing.T) {
	c := counts{slo: 10}
	for _, a := range []loadgen.Answer{
		{Took: 10, Status: 200}, {Took: 11, Status: 200}, {Status: 503}, {Status: 503},
		{Status: loadgen.TimedOut}, {Status: loadgen.NoConn}, {Status: loadgen.Broken},
	} {
		c.add(a)
	}
	require.Equal(t, []int64{1, 1, 2, 3}, []int64{c.good.Load(), c.late.Load(), c.rejected.Load(), c.gone.Load()})
}

// TestSummary: a request belongs to the part in which it was due.
func TestSummary(t *testing.T) {
	parts := []loadgen.Phase{{Rate: 85, Duration: time.Second}, {Rate: 200, Duration: time.Second}}
	answers := []loadgen.Answer{
		{At: 0, Took: time.Millisecond, Status: 200}, {At: time.Second - 1, Took: 3 * time.Second, Status: 200},
		{At: time.Second, Status: 503}, {At: time.Second, Took: time.Second, Status: loadgen.TimedOut},
	}
	var out bytes.Buffer
	summary(&out, answers, parts, 100, time.Second)
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Equal(t, strings.Fields("0.85x 2 0.01 1 0 0 1ms 1ms"), strings.Fields(rows[1]))
	require.Equal(t, strings.Fields("2.00x 2 0.00 0 1 1 0s 0s"), strings.Fields(rows[2]))
}

func TestRateAt(t *testing.T) {
	parts := []loadgen.Phase{{Rate: 1, Duration: time.Second}, {Rate: 2, Duration: time.Second}}
	require.Equal(t, []float64{1, 1, 2, 0}, []float64{
		rateAt(0, parts), rateAt(time.Second-1, parts), rateAt(time.Second, parts), rateAt(2*time.Second, parts),
	})
}

func TestBadArguments(t *testing.T) {
	for want, args := range map[string][]string{
		`the URL is "nowhere"`: {"-url", "nowhere"},
		"-times is 0":          {"-times", "0"},
		"-seconds NaN":         {"-seconds", "NaN"},
		"connection refused":   {"-url", "http://127.0.0.1:1/"},
	} {
		require.ErrorContains(t, run(io.Discard, args), want)
	}
}
