package main

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// screen is the output, and finds the first URL in it.
type screen struct {
	mu    sync.Mutex
	text  strings.Builder
	found chan string
}

var url = regexp.MustCompile(`-url (http://\S+) `)

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := url.FindSubmatch(p); m != nil {
		s.found <- string(m[1])
	}
	return s.text.Write(p)
}

// TestServes: with each limiter it answers, prints its state every second, and
// stops by itself.
func TestServes(t *testing.T) {
	for name, says := range map[string]string{
		"none":     `\d+ runnable\n`,
		"bbr":      `bbr limit none  denied: none\n`,
		"runqueue": `runqueue limit \d+ .*denied: none\n`,
		"default":  `runqueue limit \d+  sojourn limit none  denied: none\n`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &screen{found: make(chan string, 1)}
			ended := make(chan error, 1)
			go func() {
				ended <- run(context.Background(), out, []string{"-http", "127.0.0.1:0", "-exit", "2200ms", "-work", "10us", "-limiter", name})
			}()
			var at string
			select {
			case at = <-out.found:
			case err := <-ended:
				t.Fatal("it ended before it said where it serves: ", err)
			}
			response, err := http.Get(at)
			require.NoError(t, err)
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, "done\n", string(body))
			require.Empty(t, response.Header.Values("RateLimit"), "nothing is limited yet")
			require.NoError(t, <-ended)
			require.Regexp(t, `(?m)^\d\d:\d\d:\d\d +\d+ requests/s +\d+ done/s +\d+ runnable`, out.text.String())
			require.Regexp(t, says, out.text.String())
		})
	}
}

// TestDenies: denied requests are answered with 503, and counted.
func TestDenies(t *testing.T) {
	l, err := adaptive.New(adaptive.Fixed(1))
	require.NoError(t, err)
	a := &api{limiter: l}
	held, err := l.Acquire(context.Background(), "", 1)
	require.NoError(t, err)
	w := &answer{}
	r, err := http.NewRequest(http.MethodGet, "/", nil)
	require.NoError(t, err)
	a.handler().ServeHTTP(w, r)
	require.Equal(t, http.StatusServiceUnavailable, w.status)
	require.Contains(t, a.explained(), "denied: 1 limit")
	held.Release(algo.Succeeded)
	a.handler().ServeHTTP(&answer{}, r)
	require.EqualValues(t, 2, a.came.Load())
	require.EqualValues(t, 1, a.done.Load())
}

type answer struct {
	status int
	header http.Header
}

func (a *answer) Header() http.Header {
	if a.header == nil {
		a.header = http.Header{}
	}
	return a.header
}
func (a *answer) Write(p []byte) (int, error) { return len(p), nil }
func (a *answer) WriteHeader(status int)      { a.status = status }

// TestStepsOf: some time is some work, and none is none.
func TestStepsOf(t *testing.T) {
	require.Positive(t, stepsOf(5*time.Millisecond))
	require.Zero(t, stepsOf(0))
}

func TestBadArguments(t *testing.T) {
	for want, args := range map[string][]string{
		`limiter is "kratos"`:     {"-limiter", "kratos"},
		"missing port in address": {"-http", "nonsense"},
	} {
		require.ErrorContains(t, run(context.Background(), io.Discard, args), want)
	}
}
