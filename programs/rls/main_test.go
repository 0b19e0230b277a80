package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logged is a buffer for two goroutines.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// The command over its sockets: health, an answer, a changed file, a broken
// one, and the end.
func TestCommand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rls.yaml")
	write := func(limit string) {
		require.NoError(t, os.WriteFile(path+".new", []byte("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntimeouts: {unready: 200ms}\ndomains:\n  - name: d\n    descriptors: [{key: a, limit: "+limit+"}]\n"), 0o600))
		require.NoError(t, os.Rename(path+".new", path))
	}
	write("2/h")
	log := &logged{}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	exit := make(chan int, 1)
	go func() { exit <- rateLimits.Run(ctx, []string{"-config", path, "-poll", "10ms"}, io.Discard, log, nil) }()
	serving := regexp.MustCompile(`msg=serving listen=(\S+)`)
	require.Eventually(t, func() bool { return serving.MatchString(log.String()) }, 10*time.Second, time.Millisecond)
	conn, err := grpc.NewClient(serving.FindStringSubmatch(log.String())[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	health := func() grpc_health_v1.HealthCheckResponse_ServingStatus {
		resp, err := grpc_health_v1.NewHealthClient(conn).Check(context.Background(), &grpc_health_v1.HealthCheckRequest{Service: "envoy.service.ratelimit.v3.RateLimitService"})
		require.NoError(t, err)
		return resp.Status
	}
	require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, health())
	ask := func() *rls.RateLimitResponse {
		resp, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(context.Background(), &rls.RateLimitRequest{
			Domain: "d", Descriptors: []*ratelimit.RateLimitDescriptor{{Entries: []*ratelimit.RateLimitDescriptor_Entry{{Key: "a", Value: "1"}}}},
		})
		require.NoError(t, err)
		return resp
	}
	require.Equal(t, uint32(1), ask().Statuses[0].LimitRemaining)
	require.Equal(t, uint32(0), ask().Statuses[0].LimitRemaining)

	write("3/h burst 2")
	require.Eventually(t, func() bool { return ask().Statuses[0].CurrentLimit.RequestsPerUnit == 3 }, 10*time.Second, 5*time.Millisecond)
	require.Equal(t, rls.RateLimitResponse_OVER_LIMIT, ask().OverallCode)

	write("3/h bust 2")
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), `rls.yaml:6:35: domains[0].descriptors[0].limit: is \"3/h bust 2\"`)
	}, 10*time.Second, 5*time.Millisecond)
	require.Equal(t, uint32(3), ask().Statuses[0].CurrentLimit.RequestsPerUnit)

	stop()
	require.Eventually(t, func() bool { return health() == grpc_health_v1.HealthCheckResponse_NOT_SERVING }, 10*time.Second, time.Millisecond)
	require.NoError(t, conn.Close())
	require.Equal(t, 0, <-exit)
}

// Under overload the service says OVER_LIMIT: Envoy lets a request pass when a
// call fails. Denials by a limit and by the protection are in the log.
func TestOverloadIsOverLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rls.yaml")
	require.NoError(t, os.WriteFile(path, []byte("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntimeouts: {unready: 0s}\noverload: {max_in_flight: 1}\ndomains:\n  - name: d\n    descriptors: [{key: a, limit: 1000000/h burst 100000}, {key: one, limit: 1/h}]\n"), 0o600))
	log := &logged{}
	ctx, stop := context.WithCancel(context.Background())
	exit := make(chan int, 1)
	go func() { exit <- rateLimits.Run(ctx, []string{"-config", path}, io.Discard, log, nil) }()
	defer func() { stop(); <-exit }()
	serving := regexp.MustCompile(`msg=serving listen=(\S+)`)
	require.Eventually(t, func() bool { return serving.MatchString(log.String()) }, 10*time.Second, time.Millisecond)
	conn, err := grpc.NewClient(serving.FindStringSubmatch(log.String())[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	client := rls.NewRateLimitServiceClient(conn)
	ask := func(key string) (*rls.RateLimitResponse, error) {
		return client.ShouldRateLimit(context.Background(), &rls.RateLimitRequest{
			Domain: "d", Descriptors: []*ratelimit.RateLimitDescriptor{{Entries: []*ratelimit.RateLimitDescriptor_Entry{{Key: key, Value: "1"}}}},
		})
	}
	var failed, denied atomic.Int64
	var callers sync.WaitGroup
	for range 32 {
		callers.Go(func() {
			for range 300 {
				switch resp, err := ask("a"); {
				case err != nil:
					failed.Add(1)
				case resp.OverallCode == rls.RateLimitResponse_OVER_LIMIT:
					denied.Add(1)
				}
			}
		})
	}
	callers.Wait()
	require.Zero(t, failed.Load(), "a call that fails lets a request pass")
	require.Positive(t, denied.Load(), "32 callers, one in flight")

	_, err = ask("one")
	require.NoError(t, err)
	for range 5 {
		_, err = ask("one")
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), "policy=overload") && strings.Contains(log.String(), "policy=d.one")
	}, 10*time.Second, 10*time.Millisecond, log.String())
}

func TestCheck(t *testing.T) {
	var out, errs strings.Builder
	require.Equal(t, 0, rateLimits.Run(t.Context(), []string{"-check", "-config", "rls.yaml"}, &out, &errs, nil))
	require.Equal(t, "rls.yaml: ok, 2 domains\n", out.String())
	require.Equal(t, 1, rateLimits.Run(t.Context(), []string{"-check", "-config", "../gateway/gateway.yaml"}, &out, &errs, nil))
	require.Contains(t, errs.String(), "domains: is missing")
}
