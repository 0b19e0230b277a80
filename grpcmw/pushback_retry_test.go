package grpcmw_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// retrying is a client with up to 4 attempts, 5 ms apart if the server does
// not say otherwise.
const retrying = `{"methodConfig": [{"name": [{}], "retryPolicy": {
	"maxAttempts": 4, "initialBackoff": "0.005s", "maxBackoff": "0.005s", "backoffMultiplier": 1,
	"retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]}}]}`

// attempts counts the calls that arrive at a server.
type attempts struct{ n atomic.Int64 }

func (a *attempts) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			a.n.Add(1)
			return h(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			a.n.Add(1)
			return h(srv, ss)
		}),
	}
}

// statusOnly denies like other packages do.
func statusOnly(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
	return nil, status.Error(codes.ResourceExhausted, "limited")
}

// withHeader sends a header, which no interceptor around a limiter may do.
func withHeader(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
	grpc.SetHeader(ctx, metadata.Pairs("x-ratelimit-remaining", "0"))
	return h(ctx, req)
}

func withSecondValue(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
	resp, err := h(ctx, req)
	grpc.SetTrailer(ctx, metadata.Pairs(pushback, "10"))
	return resp, err
}

// The reactions of clients with a retry policy to a denial. The rows without
// this package show the reasons for its behavior.
func TestRetryTable(t *testing.T) {
	global := rpckey.Global()
	for _, row := range []struct {
		name     string
		opts     []grpc.ServerOption
		ask      func(context.Context, testpb.TestServiceClient) (metadata.MD, metadata.MD, error)
		deadline time.Duration // 0: none
		attempts int64
		wait     time.Duration // between attempts, at least
	}{
		{"status only", []grpc.ServerOption{grpc.ChainUnaryInterceptor(statusOnly)}, call, 0, 4, 0},
		{"a header", append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(withHeader)}, grpcmw.ServerOptions(always(quotaFor(10*time.Millisecond)), global)...), call, 0, 1, 0},
		{"two values", append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(withSecondValue)}, grpcmw.ServerOptions(always(quotaFor(10*time.Millisecond)), global)...), call, 0, 1, 0},
		{"100 ms", grpcmw.ServerOptions(always(quotaFor(100*time.Millisecond)), global), call, 0, 4, 100 * time.Millisecond},
		{"100 ms, overload", grpcmw.ServerOptions(always(overloadFor(100*time.Millisecond)), global), call, 0, 4, 100 * time.Millisecond},
		{"100 ms, deadline later", grpcmw.ServerOptions(always(quotaFor(100*time.Millisecond)), global), call, time.Minute, 4, 100 * time.Millisecond},
		{"-1", grpcmw.ServerOptions(always(never), global), call, 0, 1, 0},
		{"longer than the deadline", grpcmw.ServerOptions(always(quotaFor(time.Minute)), global), call, 30 * time.Second, 1, 0},
		{"limiter fails", grpcmw.ServerOptions(failing(algo.ErrCost), global), call, 0, 1, 0},
		{"stacked, outer denies", append(grpcmw.ServerOptions(always(quotaFor(20*time.Millisecond)), global), grpcmw.ServerOptions(always(never), global)...), call, 0, 4, 20 * time.Millisecond},
		{"stacked, inner denies", append(grpcmw.ServerOptions(plenty(), global), grpcmw.ServerOptions(always(quotaFor(20*time.Millisecond)), global)...), call, 0, 4, 20 * time.Millisecond},
		{"stream", grpcmw.ServerOptions(always(quotaFor(20*time.Millisecond)), global), exchange, 0, 4, 20 * time.Millisecond},
		{"stream, -1", grpcmw.ServerOptions(always(never), global), exchange, 0, 1, 0},
		{"stream, longer than the deadline", grpcmw.ServerOptions(always(quotaFor(time.Minute)), global), exchange, 30 * time.Second, 1, 0},
		{"stream, first message", grpcmw.ServerOptions(always(quotaFor(20*time.Millisecond)), global, grpcmw.WithStreamMode(grpcmw.PerRecv)), exchange, 0, 4, 20 * time.Millisecond},
		{"stream, stacked", append(grpcmw.ServerOptions(plenty(), global), grpcmw.ServerOptions(always(quotaFor(20*time.Millisecond)), global)...), exchange, 0, 4, 20 * time.Millisecond},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			seen := new(attempts)
			svc := &service{duplex: func(ss testpb.TestService_FullDuplexCallServer) error {
				_, err := ss.Recv()
				return err
			}}
			addr := serve(t, svc, append(seen.options(), row.opts...)...)
			c := testpb.NewTestServiceClient(dial(t, addr, grpc.WithDefaultServiceConfig(retrying)))
			ctx := t.Context()
			if row.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, row.deadline)
				defer cancel()
			}
			started := time.Now()
			_, _, err := row.ask(ctx, c)
			require.Equal(t, row.attempts, seen.n.Load(), "%v", err)
			require.GreaterOrEqual(t, time.Since(started), time.Duration(row.attempts-1)*row.wait)
			require.NotEqual(t, codes.DeadlineExceeded, status.Code(err))
		})
	}
}

// The pushback is exact: one retry, and the token is there.
func TestU2_RetryFindsItsToken(t *testing.T) {
	seen := new(attempts)
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(2), algo.Burst(1)))
	addr := serve(t, &service{}, append(seen.options(), grpcmw.ServerOptions(l, rpckey.Global())...)...)
	c := testpb.NewTestServiceClient(dial(t, addr, grpc.WithDefaultServiceConfig(retrying)))
	for range 2 {
		_, _, err := call(t.Context(), c)
		require.NoError(t, err)
	}
	require.EqualValues(t, 3, seen.n.Load())
}
