package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// verify accepts every token: its user is what stands before the slash.
func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	user, _, _ := strings.Cut(token, "/")
	return &auth.TokenInfo{UserID: user, Expiration: time.Now().Add(time.Hour)}, nil
}

// TestW1_ForgedSessions: however many sessions and tokens an identity has, its calls of a tool
// keep B + R*w.
func TestW1_ForgedSessions(t *testing.T) {
	all := 100_000
	if testing.Short() {
		all = 2_000
	}
	const rate, burst = 50, 20
	l := newLimits()
	l.perTool = algo.Must(algo.NewTokenBucket(algo.PerSecond(rate), algo.Burst(burst)))
	l.budget = algo.Unlimited()
	h := handler(verify, l, algo.Unlimited())
	var admitted, denials, others atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for worker := range 8 {
		wg.Go(func() {
			for i := range all / 8 {
				body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"text":"x"}}}`
				r := httptest.NewRequest("POST", "http://127.0.0.1/", strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept", "application/json, text/event-stream")
				r.Header.Set("Authorization", fmt.Sprintf("Bearer alice/%d", i))
				r.Header.Set("Mcp-Session-Id", fmt.Sprintf("forged-%d-%d", worker, i))
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				switch answer := w.Body.String(); {
				case strings.Contains(answer, "done: x"):
					admitted.Add(1)
				case strings.Contains(answer, "rate limit is exceeded"):
					denials.Add(1)
				default:
					others.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, others.Load())
	require.EqualValues(t, all, admitted.Load()+denials.Load())
	require.GreaterOrEqual(t, admitted.Load(), int64(burst))
	require.LessOrEqual(t, float64(admitted.Load()), burst+rate*time.Since(start).Seconds())
	t.Logf("%d of %d calls admitted in %v", admitted.Load(), all, time.Since(start).Round(time.Second))
}

// connect is a client of the official SDK.
func connect(t *testing.T, url, token string) *mcp.ClientSession {
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "v1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)}}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

type bearer string

// RoundTrip is part of http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// TestCosts: the budget of an identity is spent by the cost of each tool, in all sessions
// together, and others have their own.
func TestCosts(t *testing.T) {
	l := newLimits()
	l.budget = algo.Must(algo.NewFixedWindow(algo.PerDay(25)))
	server := httptest.NewServer(handler(verify, l, algo.Unlimited()))
	t.Cleanup(server.Close) // after the sessions
	call := func(token, tool string) bool {
		res, err := connect(t, server.URL, token).CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: query{"x"}})
		require.NoError(t, err)
		return !res.IsError
	}
	require.True(t, call("alice/1", "report"))
	require.True(t, call("alice/2", "report"))
	require.False(t, call("alice/3", "report"), "5 of 25 remain")
	require.True(t, call("alice/4", "search"))
	require.True(t, call("bob/1", "report"))
}

// TestSubscriptions: a subscription holds a slot of its identity while it is open.
func TestSubscriptions(t *testing.T) {
	l := newLimits()
	server := httptest.NewServer(handler(verify, l, algo.Unlimited()))
	t.Cleanup(server.Close) // after the sessions
	inFlight := l.subscriptions.(interface{ InFlight(string) int })
	subscribe := func(token string) *mcp.ClientSession {
		session := connect(t, server.URL, token)
		_ = session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "news://today"})
		return session
	}
	var sessions []*mcp.ClientSession
	for i := range 5 {
		sessions = append(sessions, subscribe(fmt.Sprintf("alice/%d", i)))
	}
	subscribe("bob/1")
	require.Eventually(t, func() bool { return inFlight.InFlight("alice") == 3 && inFlight.InFlight("bob") == 1 }, 10*time.Second, time.Millisecond)
	for _, s := range sessions {
		require.NoError(t, s.Close())
	}
	require.Eventually(t, func() bool { return inFlight.InFlight("alice") == 0 }, 10*time.Second, time.Millisecond)
	require.Equal(t, 1, inFlight.InFlight("bob"))
}
