package rpc_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/rpc"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// limiter is a limiter with a fixed answer.
type limiter algo.Decision

func (d limiter) Acquire(context.Context, string, int64) (algo.Lease, error) {
	return algo.NewLease(algo.Decision(d), nil, algo.Handle{}), nil
}

func denying(reason algo.Reason, retryAfter time.Duration) algo.Limiter {
	return limiter{Reason: reason, Limit: 10, RetryAfter: retryAfter}
}

// serve returns the answer to a request that l denies.
func serve(l algo.Limiter, r *http.Request, opts ...httpmw.Option) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h := httpmw.Limit(l, keyfunc.Global(), append(opts, httpmw.WithDenied(rpc.Denied(nil)))...)
	h(http.NotFoundHandler()).ServeHTTP(w, r)
	return w
}

func denied(l algo.Limiter, contentType string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Content-Type", contentType)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return serve(l, r)
}

func TestGRPCAnswers(t *testing.T) {
	for _, row := range []struct {
		name, sent, answer string
		l                  algo.Limiter
		timeout            string
		code, pushback     string
	}{
		{"quota", "application/grpc", "application/grpc", denying(algo.Quota, 1), "", "8", "1"},
		{"overload", "application/grpc+proto", "application/grpc+proto", denying(algo.Overload, 2*time.Second), "", "14", "2000"},
		{"never", "application/grpc+json", "application/grpc+json", denying(algo.Never, algo.Forever), "", "8", "-1"},
		{"unknown codec", "application/grpc+evil", "application/grpc", denying(algo.Quota, 1), "", "8", "1"},
		{"web", "application/grpc-web+proto", "application/grpc-web+proto", denying(algo.Quota, 1), "", "8", "1"},
		{"web, unknown codec", "application/grpc-web+evil", "application/grpc-web", denying(algo.Quota, 1), "", "8", "1"},
		{"web text", "application/grpc-web-text; charset=x", "application/grpc-web-text", denying(algo.Quota, 1), "", "8", "1"},
		{"upper case", "APPLICATION/GRPC+Proto", "application/grpc+proto", denying(algo.Quota, 1), "", "8", "1"},
		{"deadline comes first", "application/grpc", "application/grpc", denying(algo.Quota, 3*time.Second), "2999m", "8", "-1"},
		{"deadline comes later", "application/grpc", "application/grpc", denying(algo.Quota, 3*time.Second), "4S", "8", "3000"},
		{"absurd deadline", "application/grpc", "application/grpc", denying(algo.Quota, 3*time.Second), "99999999H", "8", "3000"},
		{"broken deadline", "application/grpc", "application/grpc", denying(algo.Quota, 3*time.Second), "x1S", "8", "3000"},
		{"clamped to int32", "application/grpc", "application/grpc", denying(algo.Quota, algo.Forever/2), "", "8", "2147483647"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := denied(row.l, row.sent, "Grpc-Timeout", row.timeout)
			require.Equal(t, http.StatusOK, w.Code)
			require.Empty(t, w.Body.String())
			h := w.Result().Header
			require.Equal(t, []string{row.answer}, h.Values("Content-Type"))
			require.Equal(t, []string{row.code}, h.Values("Grpc-Status"))
			requireJitter(t, row.pushback, h.Values("Grpc-Retry-Pushback-Ms"))
			require.NotEmpty(t, h.Get("Grpc-Message"))
		})
	}
}

// requireJitter requires one value, want or up to a fifth more.
func requireJitter(t *testing.T, want string, got []string) {
	require.Len(t, got, 1)
	least, err := strconv.Atoi(want)
	require.NoError(t, err)
	ms, err := strconv.Atoi(got[0])
	require.NoError(t, err)
	require.GreaterOrEqual(t, ms, least)
	require.LessOrEqual(t, ms, max(least+least/5, least))
}

func TestConnectAnswers(t *testing.T) {
	type wire struct{ Code, Message string }
	for _, row := range []struct {
		l      algo.Limiter
		status int
		code   string
	}{
		{denying(algo.Quota, time.Second), 429, "resource_exhausted"},
		{denying(algo.Overload, time.Second), 503, "unavailable"},
	} {
		byGet := httptest.NewRequest(http.MethodGet, "/", nil)
		byGet.URL.RawQuery = "message=%7B%7D&connect=v1"
		for _, w := range []*httptest.ResponseRecorder{
			denied(row.l, "application/proto", "Connect-Protocol-Version", "1"),
			serve(row.l, byGet),
		} {
			require.Equal(t, row.status, w.Code)
			require.Equal(t, "application/json", w.Result().Header.Get("Content-Type"))
			require.Contains(t, []string{"1", "2"}, w.Result().Header.Get("Retry-After"))
			var e wire
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &e))
			require.Equal(t, row.code, e.Code)
		}
		for sent, answer := range map[string]string{
			"application/connect+json": "application/connect+json", "application/connect+evil": "application/connect+proto",
		} {
			w := denied(row.l, sent)
			require.Equal(t, http.StatusOK, w.Code)
			require.Equal(t, answer, w.Result().Header.Get("Content-Type"))
			b := w.Body.Bytes()
			require.EqualValues(t, 2, b[0], "end of stream")
			require.EqualValues(t, len(b)-5, binary.BigEndian.Uint32(b[1:5]))
			var e struct{ Error wire }
			require.NoError(t, json.Unmarshal(b[5:], &e))
			require.Equal(t, row.code, e.Error.Code)
		}
	}
}

// The message depends on the decision, and other requests get it as text.
func TestMessages(t *testing.T) {
	for _, row := range []struct {
		l       algo.Limiter
		opts    []httpmw.Option
		code    string
		message string
	}{
		{denying(algo.Quota, time.Second), nil, "8", "rate limit exceeded"},
		{denying(algo.Never, algo.Forever), nil, "8", "the call costs more than its rate limit can ever admit"},
		{denying(algo.Banned, time.Hour), nil, "8", "the caller is banned"},
		{denying(algo.Overload, time.Second), nil, "14", "the server cannot take the call at the moment"},
	} {
		w := denied(row.l, "application/grpc")
		require.Equal(t, row.code, w.Result().Header.Get("Grpc-Status"))
		require.Equal(t, row.message, w.Result().Header.Get("Grpc-Message"))
		w = denied(row.l, "text/plain")
		require.Equal(t, row.message+"\n", w.Body.String())
		require.NotEmpty(t, w.Result().Header.Get("RateLimit"))
	}
}

// Without the exact wait the pushback is whole seconds.
func TestPushbackWithoutMilliseconds(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Content-Type", "application/grpc")
	w := serve(denying(algo.Quota, 1500*time.Millisecond), r, httpmw.WithHeaders(httpmw.None))
	require.Equal(t, []string{"2000"}, w.Result().Header.Values("Grpc-Retry-Pushback-Ms"))
}

// Another handler answers what is no call, and outside of a denial.
func TestOther(t *testing.T) {
	teapot := rpc.Denied(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	w := httptest.NewRecorder()
	httpmw.Limit(denying(algo.Quota, 1), keyfunc.Global(), httpmw.WithDenied(teapot))(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, http.StatusTeapot, w.Code)
	w = httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Content-Type", "application/grpc")
	teapot.ServeHTTP(w, r)
	require.Equal(t, http.StatusTeapot, w.Code)
	for _, kind := range []string{"application/grpcfoo", "application/grpc-webfoo", "application/connect", "text/plain"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Content-Type", kind)
		httpmw.Limit(denying(algo.Quota, 1), keyfunc.Global(), httpmw.WithDenied(teapot))(http.NotFoundHandler()).ServeHTTP(w, r)
		require.Equal(t, http.StatusTeapot, w.Code, kind)
	}
}

// A gRPC client of google.golang.org/grpc, calling a gRPC server that is an
// http.Handler, gets its status, and the pushback as a trailer.
func TestGRPCOverHTTP(t *testing.T) {
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	answer := httpmw.WithDenied(rpc.Denied(nil))
	limited := httpmw.Limit(algo.Must(algo.NewTokenBucket(algo.PerHour(1))), keyfunc.ClientIP(), answer)(server)
	h2c := new(http.Protocols)
	h2c.SetUnencryptedHTTP2(true)
	web := httptest.NewUnstartedServer(httpmw.Limit(algo.Must(adaptive.New(adaptive.Fixed(1))), keyfunc.ClientIP(), answer)(limited))
	web.Config.Protocols = h2c
	web.Start()
	defer web.Close()
	u, err := url.Parse(web.URL)
	require.NoError(t, err)
	conn, err := grpc.NewClient(u.Host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := grpc_health_v1.NewHealthClient(conn)
	_, err = client.Check(ctx, new(grpc_health_v1.HealthCheckRequest))
	require.NoError(t, err)
	var header, trailer metadata.MD
	_, err = client.Check(ctx, new(grpc_health_v1.HealthCheckRequest), grpc.Header(&header), grpc.Trailer(&trailer))
	require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
	require.Equal(t, []string{"-1"}, trailer.Get("grpc-retry-pushback-ms"), "an hour is beyond the deadline")
	require.Equal(t, "rate limit exceeded", status.Convert(err).Message())
}

// TestRetryPolicyOverHTTP: over net/http the retry policy of a client applies to denials of httpmw, which
// are a single header, and not to those of grpcmw, before which ServeHTTP sends one.
func TestRetryPolicyOverHTTP(t *testing.T) {
	policy := grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 2,
		"initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`)
	once := func() algo.Limiter { return denying(algo.Quota, time.Millisecond) }
	for name, row := range map[string]struct {
		options  []grpc.ServerOption
		around   func(http.Handler) http.Handler
		attempts int32
	}{
		"httpmw": {nil, httpmw.Limit(once(), keyfunc.Global(), httpmw.WithDenied(rpc.Denied(nil))), 2},
		"grpcmw": {grpcmw.ServerOptions(once(), rpckey.Global(), grpcmw.WithExempt()), func(h http.Handler) http.Handler { return h }, 1},
	} {
		server := grpc.NewServer(row.options...)
		grpc_health_v1.RegisterHealthServer(server, health.NewServer())
		var attempts atomic.Int32
		handler := row.around(server)
		web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			attempts.Add(1)
			handler.ServeHTTP(w, r)
		}))
		web.Config.Protocols = new(http.Protocols)
		web.Config.Protocols.SetUnencryptedHTTP2(true)
		web.Start()
		conn, err := grpc.NewClient(web.Listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), policy)
		require.NoError(t, err)
		_, err = grpc_health_v1.NewHealthClient(conn).Check(t.Context(), new(grpc_health_v1.HealthCheckRequest))
		require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
		require.Equal(t, row.attempts, attempts.Load(), name)
		require.NoError(t, conn.Close())
		web.Close()
	}
}

// A server that is an http.Handler answers its gRPC clients in their protocol.
func ExampleDenied() {
	server := grpc.NewServer()
	limit := httpmw.Limit(algo.Must(algo.NewTokenBucket(algo.PerHour(1))), keyfunc.ClientIP(), httpmw.WithDenied(rpc.Denied(nil)))
	handler := limit(server)
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/a.B/C", nil)
		r.ProtoMajor = 2
		r.Header.Set("Content-Type", "application/grpc")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Result().Header.Get("Grpc-Message"))
	}
	// Output:
	//
	// rate limit exceeded
}
