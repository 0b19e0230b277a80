package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// started runs the service, and stops it when the test ends.
func started(t *testing.T) *service {
	t.Helper()
	s, err := newService(addresses{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		require.NoError(t, <-ended)
	})
	return s
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// scrape returns the series of one metric.
func scrape(t *testing.T, s *service, name string) map[string]float64 {
	t.Helper()
	code, text := get(t, "http://"+s.onMetrics.Addr().String()+"/metrics")
	require.Equal(t, 200, code)
	series := map[string]float64{}
	labels := regexp.MustCompile(`otel_scope_[a-z_]+="[^"]*",?`)
	for _, m := range regexp.MustCompile(`(?m)^`+name+`\{([^}]*)\} (\S+)$`).FindAllStringSubmatch(text, -1) {
		v, err := strconv.ParseFloat(m[2], 64)
		require.NoError(t, err)
		series[labels.ReplaceAllString(m[1], "")] = v
	}
	return series
}

// What the clients of both transports got, is what Prometheus reads.
func TestScrape(t *testing.T) {
	s := started(t)
	web := map[int]float64{}
	for range 30 {
		code, _ := get(t, "http://"+s.onHTTP.Addr().String()+"/")
		web[code]++
	}
	require.Positive(t, web[429])
	require.GreaterOrEqual(t, web[200], 20.0)

	conn, err := grpc.NewClient("passthrough:///"+s.onGRPC.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	rpc := map[codes.Code]float64{}
	for range 5 {
		_, err := testpb.NewTestServiceClient(conn).EmptyCall(t.Context(), &testpb.Empty{})
		rpc[status.Code(err)]++
	}

	requests := scrape(t, s, "ratelimit_requests_total")
	series := func(policy, outcome, transport string) float64 {
		reason := map[string]string{"denied": `ratelimit_reason="quota",`}[outcome]
		return requests[`ratelimit_outcome="`+outcome+`",ratelimit_policy="`+policy+`",`+reason+`ratelimit_transport="`+transport+`"`]
	}
	require.Equal(t, web[200], series("users", "allowed", "http"))
	require.Equal(t, web[429], series("users", "denied", "http"))
	require.Equal(t, web[200], series("capacity", "allowed", "http"))
	require.Equal(t, rpc[codes.OK], series("users", "allowed", "grpc"))
	require.Equal(t, rpc[codes.ResourceExhausted], series("users", "denied", "grpc"))

	require.Equal(t, map[string]float64{`ratelimit_policy="capacity"`: 0}, scrape(t, s, "ratelimit_active_requests"))
	for _, limit := range scrape(t, s, "ratelimit_active_requests_limit") {
		require.Positive(t, limit)
	}
	require.Equal(t, 1.0, scrape(t, s, "ratelimit_keys")[`ratelimit_policy="users"`])
	require.Equal(t, 20.0, scrape(t, s, "ratelimit_limit")[`ratelimit_policy="users"`])
	waits := scrape(t, s, "ratelimit_queue_duration_seconds_count")
	require.Equal(t, web[200]+web[429], waits[`ratelimit_policy="users",ratelimit_transport="http"`])
}

// The metrics are not where the clients are.
func TestMetricsAreInside(t *testing.T) {
	s := started(t)
	_, text := get(t, "http://"+s.onHTTP.Addr().String()+"/metrics")
	require.Equal(t, "hello\n", text)
}

func TestAddressInUse(t *testing.T) {
	s := started(t)
	_, err := newService(addresses{"127.0.0.1:0", s.onGRPC.Addr().String(), "127.0.0.1:0"}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "address already in use")
}
