package httpmw_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
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
				tr := httpmw.Transport(reply(200), l(t), keyfunc.Global())
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
		h := httpmw.Limit(bucket(t, algo.PerMinute(3)), keyfunc.ClientIP())(ok)
		tr := httpmw.Transport(roundTrip(func(r *http.Request) (*http.Response, error) {
			r.RemoteAddr = "192.0.2.1:1"
			return serve(h, r).Result(), nil
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
	spent.Allow("", 1)
	spent.Allow("", 1)
	noSend := roundTrip(func(*http.Request) (*http.Response, error) { t.Error("sent"); return nil, io.EOF })
	broken := errors.New("broken")
	for _, row := range []struct {
		name string
		l    algo.Limiter
		key  keyfunc.HTTP
		opts []httpmw.Option
		want error
	}{
		{"no time to wait", spent, keyfunc.Global(), nil, algo.ErrWait},
		{"overload", denying(algo.Overload, 0), keyfunc.Global(), nil, algo.ErrWait},
		{"never", denying(algo.Never, algo.Forever), keyfunc.Global(), nil, algo.ErrCost},
		{"negative cost", admitting(), keyfunc.Global(), []httpmw.Option{httpmw.WithCost(func(*http.Request) int64 { return -1 }),
			httpmw.WithOnError(httpmw.FailOpen)}, algo.ErrCost},
		{"limiter fails", &scripted{err: broken}, keyfunc.Global(), nil, broken},
		{"key fails", admitting(), failingKey(broken), nil, broken},
		{"no key", admitting(), failingKey(keyfunc.ErrNoKey), []httpmw.Option{httpmw.WithMissingKey(httpmw.Deny)}, keyfunc.ErrNoKey},
		{"panic", admitting(), func(*http.Request) (string, error) { panic("boom") }, nil, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			body := new(tracked)
			r := outgoing(ctx, "http://a/")
			r.Body = body
			send := func() error {
				_, err := httpmw.Transport(noSend, row.l, row.key, row.opts...).RoundTrip(r)
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

func TestTransportFailOpen(t *testing.T) {
	for _, key := range []keyfunc.HTTP{keyfunc.Global(), failingKey(io.EOF)} {
		tr := httpmw.Transport(reply(200), &scripted{err: io.EOF}, key, httpmw.WithOnError(httpmw.FailOpen))
		resp, err := tr.RoundTrip(outgoing(t.Context(), "http://a/"))
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
	}
}

func TestTransportWiring(t *testing.T) {
	k := keyfunc.Global()
	for message, wire := range map[string]func(){
		"httpmw: Transport: the limiter is nil":                   func() { httpmw.Transport(nil, nil, k) },
		"httpmw: Transport: the key function is nil":              func() { httpmw.Transport(nil, admitting(), nil) },
		"httpmw: Transport: WithMaxServers: is 0, want 1 or more": func() { httpmw.Transport(nil, admitting(), k, httpmw.WithMaxServers(0)) },
		"httpmw: Transport: does not take the option WithHeaders, only WithName, WithCost, WithSkip, WithRefundIf, WithOnError, WithMissingKey, WithObserver, WithMaxServers, WithServerWait": func() {
			httpmw.Transport(nil, admitting(), k, httpmw.WithHeaders(httpmw.None))
		},
	} {
		require.PanicsWithValue(t, message, wire)
	}
	closed := false
	base := closing{reply(200), &closed}
	(&http.Client{Transport: httpmw.Transport(base, admitting(), k)}).CloseIdleConnections()
	require.True(t, closed)
	(&http.Client{Transport: httpmw.Transport(reply(200), admitting(), k)}).CloseIdleConnections()
}

type closing struct {
	http.RoundTripper
	closed *bool
}

func (c closing) CloseIdleConnections() { *c.closed = true }

func TestTransportSkipAndObserver(t *testing.T) {
	var results []httpmw.Result
	l := denying(algo.Overload, 0)
	skip := httpmw.WithSkip(func(r *http.Request) bool { return r.URL.Path == "/health" })
	tr := httpmw.Transport(reply(200), l, keyfunc.Global(), skip,
		httpmw.WithObserver(func(e httpmw.Event) { results = append(results, e.Result) }))
	_, err := tr.RoundTrip(outgoing(t.Context(), "http://a/health"))
	require.NoError(t, err)
	_, err = tr.RoundTrip(outgoing(t.Context(), "http://a/"))
	require.Error(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = tr.RoundTrip(outgoing(ctx, "http://a/"))
	require.ErrorIs(t, err, context.Canceled)
	l.decision.Allowed = true
	_, err = tr.RoundTrip(outgoing(t.Context(), "http://a/"))
	require.NoError(t, err)
	require.Equal(t, []httpmw.Result{httpmw.Denied, httpmw.Canceled, httpmw.Allowed}, results)
}
