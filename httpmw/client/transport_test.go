package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/client"
	"github.com/sluice-go/sluice/keyfunc"
)

// roundTrip is a server in the test's own time.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	return f(r)
}

// reply is a server that answers always the same.
func reply(status int, headers ...string) roundTrip {
	return func(*http.Request) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(headers); i += 2 {
			h.Add(headers[i], headers[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader("body"))}, nil
	}
}

func outgoing(ctx context.Context, url string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	return r
}

func unlimited(t testing.TB) algo.Limiter { return bucket(t, algo.PerSecond(1e6)) }

func TestTransportPaces(t *testing.T) {
	for name, l := range map[string]func(t *testing.T) algo.Limiter{
		"denials": func(t *testing.T) algo.Limiter { return bucket(t, algo.PerSecond(1)) },
		"delays":  func(t *testing.T) algo.Limiter { return bucket(t, algo.PerSecond(1), algo.MaxWait(time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := client.Transport(reply(200), l(t), keyfunc.Global())
				start := time.Now()
				for range 5 {
					_, err := tr.RoundTrip(outgoing(t.Context(), "http://a/"))
					require.NoError(t, err)
				}
				require.Equal(t, 4*time.Second, time.Since(start))
			})
		})
	}
}

// Client and server of this package together: the client never sees a 429.
func TestTransportWithLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := httpmw.Limit(bucket(t, algo.PerMinute(3)), keyfunc.ClientIP())(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		tr := client.Transport(roundTrip(func(r *http.Request) (*http.Response, error) {
			r.RemoteAddr = "192.0.2.1:1"
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Result(), nil
		}), unlimited(t), keyfunc.Global())
		for range 20 {
			resp, err := tr.RoundTrip(outgoing(t.Context(), "http://a/"))
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode)
		}
	})
}

// tracked is a body that counts its calls.
type tracked struct{ reads, closes atomic.Int32 }

func (b *tracked) Read([]byte) (int, error) { b.reads.Add(1); return 0, io.EOF }
func (b *tracked) Close() error             { b.closes.Add(1); return nil }

// A request that is not sent fails at once, is not read, and is closed.
func TestTransportFailsAtOnce(t *testing.T) {
	spent := bucket(t, algo.PerHour(1))
	_, err := spent.Acquire(t.Context(), "", 1)
	require.NoError(t, err)
	noSend := roundTrip(func(*http.Request) (*http.Response, error) { t.Error("sent"); return nil, io.EOF })
	broken := errors.New("broken")
	for _, row := range []struct {
		name string
		l    algo.Limiter
		key  keyfunc.HTTP
		opts []client.Option
		want error
	}{
		{"no time to wait", spent, keyfunc.Global(), nil, algo.ErrWait},
		{"overload", denying(algo.Overload, 0), keyfunc.Global(), nil, algo.ErrWait},
		{"never", denying(algo.Never, algo.Forever), keyfunc.Global(), nil, algo.ErrCost},
		{"negative cost", admitting(), keyfunc.Global(), []client.Option{client.WithCost(func(*http.Request) int64 { return -1 }),
			client.WithFailOpen()}, algo.ErrCost},
		{"limiter fails", failing(broken), keyfunc.Global(), nil, broken},
		{"key fails", admitting(), failingKey(broken), nil, broken},
		{"no key", admitting(), failingKey(keyfunc.ErrNoKey), nil, keyfunc.ErrNoKey},
		{"panic", admitting(), func(*http.Request) (string, error) { panic("boom") }, nil, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			body := new(tracked)
			r := outgoing(ctx, "http://a/")
			r.Body = body
			send := func() error {
				_, err := client.Transport(noSend, row.l, row.key, row.opts...).RoundTrip(r)
				return err
			}
			if row.want == nil {
				require.Panics(t, func() { send() })
			} else {
				require.ErrorIs(t, send(), row.want)
			}
			require.Zero(t, body.reads.Load())
			require.EqualValues(t, 1, body.closes.Load())
		})
	}
}

// Uploads and streams that have begun are not repeated, however they end: the caller gets the
// answer or the error of the only attempt, although the request has a GetBody.
func TestTransportSendsOnce(t *testing.T) {
	broken := errors.New("broken")
	upload := func(r *http.Request) error { _, err := io.CopyN(io.Discard, r.Body, 3); return err }
	for name, server := range map[string]roundTrip{
		"an upload is denied": func(r *http.Request) (*http.Response, error) {
			return must(reply(429, "Retry-After", "1")(r)), upload(r)
		},
		"an upload is postponed": func(r *http.Request) (*http.Response, error) {
			return must(reply(503, "Retry-After", "1")(r)), upload(r)
		},
		"an upload breaks": func(r *http.Request) (*http.Response, error) { return nil, errors.Join(upload(r), broken) },
		"a stream breaks": func(r *http.Request) (*http.Response, error) {
			resp := must(reply(200)(r))
			resp.Body = io.NopCloser(io.MultiReader(strings.NewReader("event"), iotest.ErrReader(broken)))
			return resp, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			count := roundTrip(func(r *http.Request) (*http.Response, error) { sent++; return server(r) })
			c := &http.Client{Transport: client.Transport(count, learn.New(algo.PerSecond(10)), keyfunc.Global())}
			resp, err := c.Post("http://a/", "text/plain", strings.NewReader("0123456789"))
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				require.NoError(t, resp.Body.Close())
			}
			require.Equal(t, strings.HasSuffix(name, "breaks"), errors.Is(err, broken), "%v", err)
			require.Equal(t, 1, sent)
		})
	}
}

func must(resp *http.Response, err error) *http.Response {
	if err != nil {
		panic(err)
	}
	return resp
}

func TestTransportFailOpen(t *testing.T) {
	for _, key := range []keyfunc.HTTP{keyfunc.Global(), failingKey(io.EOF)} {
		tr := client.Transport(reply(200), failing(io.EOF), key, client.WithFailOpen())
		resp, err := tr.RoundTrip(outgoing(t.Context(), "http://a/"))
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
	}
}

func TestTransportWiring(t *testing.T) {
	k := keyfunc.Global()
	for message, wire := range map[string]func(){
		"client: Transport: the limiter is nil":                   func() { client.Transport(nil, nil, k) },
		"client: Transport: the key function is nil":              func() { client.Transport(nil, admitting(), nil) },
		"client: Transport: WithMaxServers: is 0, want 1 or more": func() { client.Transport(nil, admitting(), k, client.WithMaxServers(0)) },
		"client: Transport: WithCost: is nil":                     func() { client.Transport(nil, admitting(), k, client.WithCost(nil)) },
		"client: Transport: the zero Option is not an option":     func() { client.Transport(nil, admitting(), k, client.Option{}) },
		"client: Transport: duplicate option WithMaxServers":      func() { client.Transport(nil, admitting(), k, client.WithMaxServers(1), client.WithMaxServers(2)) },
	} {
		require.PanicsWithValue(t, message, wire)
	}
	closed := false
	base := closing{reply(200), &closed}
	(&http.Client{Transport: client.Transport(base, admitting(), k)}).CloseIdleConnections()
	require.True(t, closed)
	(&http.Client{Transport: client.Transport(reply(200), admitting(), k)}).CloseIdleConnections()
}

type closing struct {
	http.RoundTripper
	closed *bool
}

func (c closing) CloseIdleConnections() { *c.closed = true }

func TestTransportSkipAndObserver(t *testing.T) {
	var results []telemetry.Result
	d := algo.Decision{Reason: algo.Overload}
	l := limiter(func(string, int64) (algo.Decision, error) { return d, nil })
	tr := client.Transport(reply(200), l, keyfunc.Global(),
		client.WithSkip(func(r *http.Request) bool { return r.URL.Path == "/health" }),
		client.WithObserver(func(e telemetry.Event) { results = append(results, e.Result) }))
	send := func(ctx context.Context, path string) error {
		_, err := tr.RoundTrip(outgoing(ctx, "http://a"+path))
		return err
	}
	require.NoError(t, send(t.Context(), "/health"))
	require.Error(t, send(t.Context(), "/"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, send(ctx, "/"), context.Canceled)
	d.Allowed = true
	require.NoError(t, send(t.Context(), "/"))
	require.Equal(t, []telemetry.Result{telemetry.Denied, telemetry.Canceled, telemetry.Allowed}, results)
}

// The event of a request says how long it waited, and a denial has the limiter's decision.
func TestTransportEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e telemetry.Event
		observe := client.WithObserver(func(got telemetry.Event) { e = got })
		start, d := time.Now(), algo.Decision{Allowed: true, Delay: 10 * time.Second}
		l := limiter(func(string, int64) (algo.Decision, error) { return d, nil })
		tr := client.Transport(reply(200), l, keyfunc.Global(), observe, client.WithName("partner"), client.WithCost(func(*http.Request) int64 { return 3 }))
		_, err := tr.RoundTrip(outgoing(t.Context(), "http://a/"))
		require.NoError(t, err)
		require.Equal(t, telemetry.Event{Context: t.Context(), At: start.Add(10 * time.Second), Waited: 10 * time.Second, Client: true,
			Policy: "partner", Cost: 3, Decision: d}, e)

		d = algo.Decision{Reason: algo.Quota, Limit: 10, RetryAfter: time.Minute}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = tr.RoundTrip(outgoing(ctx, "http://a/"))
		require.ErrorIs(t, err, algo.ErrWait)
		require.ErrorContains(t, err, "client: partner: ")
		require.Equal(t, telemetry.Denied, e.Result)
		require.Equal(t, d, e.Decision)
	})
}

// An observer that panics leaves no slot behind.
func TestC1_PanickingObserver(t *testing.T) {
	l := newSlots(1)
	tr := client.Transport(reply(200), l, keyfunc.Global(), client.WithObserver(func(telemetry.Event) { panic("observer") }))
	for range 3 {
		require.PanicsWithValue(t, "observer", func() { tr.RoundTrip(outgoing(t.Context(), "http://a/")) })
	}
	require.Zero(t, l.inFlight())
	require.Equal(t, 3, l.released(algo.Failed))
}
