package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
	"github.com/sluice-go/sluice/keyfunc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const file = `{"plans": {"p": {"requests": "token-bucket 1000/h", "tokens": "token-bucket 1000/h", "money": "fixed-window 100000/day zone UTC", "streams": 2, "max_tokens": 200}},
	"users": {"key": {"name": "ann", "plan": "p"}}, "prices": {"input": 1, "output": 10}}`

// events is an upstream that streams n words and then the end.
func events(n int, end string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range n {
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
		}
		fmt.Fprint(w, end+"data: [DONE]\n\n")
	}
}

// setup starts the gateway before an upstream.
func setup(t *testing.T, redis string, model http.Handler) (front string, l limits) {
	c, err := load([]byte(file))
	require.NoError(t, err)
	store, err := connect(redis)
	require.NoError(t, err)
	if store != nil {
		t.Cleanup(func() { store.Close(); store.Client().Close() })
	}
	all, err := c.open(store)
	require.NoError(t, err)
	return serveTest(t, c, all, model), all["p"]
}

func serveTest(t *testing.T, c *config, all map[string]limits, model http.Handler) (front string) {
	m := httptest.NewServer(model)
	t.Cleanup(m.Close)
	g, err := newGateway(c, m.URL, all, func(telemetry.Event) {})
	require.NoError(t, err)
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return server.URL
}

// ask sends a body of 80 bytes, which is taken for 21 tokens.
func ask(t *testing.T, front, key string, stream bool) (status int, body string) {
	text := fmt.Sprintf(`{"model":"m","stream":%v,"max_tokens":50,"x":"`, stream)
	text += strings.Repeat("a", 80-len(text)-2) + `"}`
	r, err := http.NewRequest(http.MethodPost, front, strings.NewReader(text))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+key)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(b)
}

// spent is what ann has spent of a limit.
func spent(t *testing.T, l algo.Limiter) int64 {
	lease, err := l.Acquire(context.Background(), keyfunc.Identity("ann"), 0)
	require.NoError(t, err)
	return lease.Limit - lease.Remaining
}

// Tokens and money are settled to the upstream's report, or else to the counted
// chunks.
func TestUsageIsSettled(t *testing.T) {
	report := func(usage string) string { return "data: {\"choices\":[],\"usage\":" + usage + "}\n\n" }
	for name, row := range map[string]struct {
		model         http.HandlerFunc
		stream        bool
		status        int
		tokens, money int64
	}{
		"reported":           {events(30, report(`{"prompt_tokens":9,"completion_tokens":33}`)), true, 200, 42, 339},
		"as messages":        {events(30, report(`{"input_tokens":9,"output_tokens":33}`)), true, 200, 42, 339},
		"more than the most": {events(30, report(`{"prompt_tokens":9,"completion_tokens":300}`)), true, 200, 309, 3009},
		"twice":              {events(30, report(`{"prompt_tokens":9,"completion_tokens":1}`)+report(`{"prompt_tokens":9,"completion_tokens":33}`)), true, 200, 42, 339},
		"never":              {events(30, ""), true, 200, 51, 321},
		"negative":           {events(30, report(`{"prompt_tokens":9,"completion_tokens":-33}`)), true, 200, 51, 321},
		"whole": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "{\n\"choices\":[],\n\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":33}}")
		}, false, 200, 42, 339},
		"failure": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 500) }, true, 502, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			front, l := setup(t, "", row.model)
			status, _ := ask(t, front, "key", row.stream)
			require.Equal(t, row.status, status)
			require.Equal(t, row.tokens, spent(t, l.tokens))
			require.Equal(t, row.money, spent(t, l.money))
			require.EqualValues(t, 1, spent(t, l.requests))
			require.EqualValues(t, 0, spent(t, l.streams))
		})
	}
}

// A stream that is longer than the remaining tokens ends with a whole event and
// gives the reason.
func TestStreamsEnd(t *testing.T) {
	front, l := setup(t, "", events(1500, ""))
	status, body := ask(t, front, "key", true)
	require.Equal(t, 200, status)
	require.Equal(t, 1000-21+1, strings.Count(body, "content"), "one event above the limit")
	require.True(t, strings.HasSuffix(body, "are spent\"}}\n\ndata: [DONE]\n\n"))
	require.EqualValues(t, 1000, spent(t, l.tokens))
	status, body = ask(t, front, "key", true)
	require.Equal(t, 429, status)
	require.Contains(t, body, `"p-tokens"`)
	require.EqualValues(t, 1, spent(t, l.requests), "all or none")
}

func TestStrangersAndNonsense(t *testing.T) {
	front, l := setup(t, "", events(1, ""))
	status, _ := ask(t, front, "other", true)
	require.Equal(t, 401, status)
	for body, want := range map[string]int{"": 400, "[]": 400, `{"max_tokens":"x"}`: 400, strings.Repeat(" ", mostBody+1): 413} {
		r, err := http.NewRequest(http.MethodPost, front, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer key")
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		answer.Body.Close()
		require.Equal(t, want, answer.StatusCode)
	}
	require.Zero(t, spent(t, l.requests))
}

// On Redis two gateways share the limits.
func TestOnRedis(t *testing.T) {
	server := redistest.Start(t)
	model := events(30, "data: {\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":33}}\n\n")
	first, l := setup(t, server.Addr(), model)
	second, _ := setup(t, server.Addr(), model)
	for _, front := range []string{first, second} {
		status, _ := ask(t, front, "key", true)
		require.Equal(t, 200, status)
	}
	require.Eventually(t, func() bool { return spent(t, l.tokens) == 84 && spent(t, l.money) == 678 }, 10*time.Second, 5*time.Millisecond)
	require.EqualValues(t, 2, spent(t, l.requests))
}

func TestTheFile(t *testing.T) {
	for _, bad := range []string{
		"", "{", `{"x": 1}`, strings.Replace(file, `"max_tokens": 200`, `"max_tokens": 0`, 1), strings.Replace(file, `"plan": "p"`, `"plan": "q"`, 1),
		strings.Replace(file, `"input": 1`, `"input": -1`, 1), strings.Replace(file, "token-bucket", "leaking", 1),
	} {
		_, err := load([]byte(bad))
		require.Error(t, err, "%s", bad)
	}
	c, err := load([]byte(strings.Replace(file, `"streams": 2`, `"streams": 0`, 1)))
	require.NoError(t, err)
	_, err = c.open(nil)
	require.ErrorContains(t, err, "plan p, streams")
	require.Error(t, run(t.Context(), io.Discard, []string{"-config", "none.json"}))
}

// The table is printed, and no limit is exceeded.
func TestDemo(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, []string{"-exit", "-http", "127.0.0.1:0", "-admin", "127.0.0.1:0"}))
	require.Regexp(t, `(?m)^ +ann +free .*\n +bob +pro `, out.String())
}
