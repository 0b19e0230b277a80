package httpmw_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func denied(l algo.Limiter, contentType string, headers ...string) *httptest.ResponseRecorder {
	r := get(append(headers, "Content-Type", contentType)...)
	r.Method = http.MethodPost
	return serve(httpmw.Limit(l, keyfunc.Global())(ok), r)
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
		byGet := get()
		byGet.URL.RawQuery = "message=%7B%7D&connect=v1"
		for _, w := range []*httptest.ResponseRecorder{
			denied(row.l, "application/proto", "Connect-Protocol-Version", "1"),
			serve(httpmw.Limit(row.l, keyfunc.Global())(ok), byGet),
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

// The details of a denial are those that package grpcmw sends.
func TestGRPCDetails(t *testing.T) {
	const method = "/grpc.health.v1.Health/Watch"
	for name, decision := range map[string]algo.Decision{
		"quota":    {Reason: algo.Quota, Limit: 10, RetryAfter: 1500 * time.Millisecond},
		"overload": {Reason: algo.Overload, Limit: 10, RetryAfter: 20 * time.Second},
		"banned":   {Reason: algo.Banned, Limit: 10, RetryAfter: time.Hour},
		"never":    {Reason: algo.Never, Limit: 10, RetryAfter: algo.Forever},
	} {
		t.Run(name, func(t *testing.T) {
			l := admitting()
			l.decision = decision
			r := get("Content-Type", "application/grpc")
			w := serve(httpmw.Limit(l, key("alice"), httpmw.WithName("p"))(ok), r)
			raw, err := base64.RawStdEncoding.DecodeString(w.Result().Header.Get("Grpc-Status-Details-Bin"))
			require.NoError(t, err)
			got := new(spb.Status)
			require.NoError(t, proto.Unmarshal(raw, got))
			require.Equal(t, strconv.Itoa(int(got.GetCode())), w.Result().Header.Get("Grpc-Status"))
			require.Equal(t, w.Result().Header.Get("Grpc-Message"), got.GetMessage())

			i := grpcmw.UnaryServerInterceptor(l, func(context.Context, string) (string, error) { return "alice", nil }, grpcmw.WithName("p"))
			_, err = i(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: method}, nil)
			want := status.Convert(err).Details()
			require.Len(t, got.GetDetails(), len(want))
			for i, d := range status.FromProto(got).Details() {
				if wait, ok := d.(*errdetails.RetryInfo); ok {
					require.GreaterOrEqual(t, wait.GetRetryDelay().AsDuration(), decision.RetryAfter)
					require.LessOrEqual(t, wait.GetRetryDelay().AsDuration(), decision.RetryAfter+min(decision.RetryAfter/5, 5*time.Second))
					continue
				}
				require.True(t, proto.Equal(want[i].(proto.Message), d.(proto.Message)), "%v, not %v", d, want[i])
			}
		})
	}
}

// A gRPC client of google.golang.org/grpc, calling a gRPC server that is an
// http.Handler, gets its status, and the pushback as a trailer.
func TestGRPCOverHTTP(t *testing.T) {
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	limited := httpmw.Limit(bucket(t, algo.PerHour(1)), keyfunc.ClientIP())(server)
	inFlight := httpmw.Limit(newSlots(1), keyfunc.ClientIP())(limited)
	base, _ := start(t, "h2c", inFlight)
	u, err := url.Parse(base)
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
	var wait time.Duration
	for _, d := range status.Convert(err).Details() {
		if retry, ok := d.(*errdetails.RetryInfo); ok {
			wait = retry.GetRetryDelay().AsDuration()
		}
	}
	require.Greater(t, wait, 50*time.Minute)
}
