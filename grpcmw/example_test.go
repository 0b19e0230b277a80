package grpcmw_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// start runs a server and connects to it, in memory.
func start(srv *grpc.Server, opts ...grpc.DialOption) (conn *grpc.ClientConn, stop func()) {
	testpb.RegisterTestServiceServer(srv, &service{})
	healthpb.RegisterHealthServer(srv, health.NewServer())
	lis := bufconn.Listen(1 << 16)
	served := make(chan struct{})
	go func() {
		defer close(served)
		srv.Serve(lis)
	}()
	opts = append(opts,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return lis.Dial() }))
	conn, err := grpc.NewClient("passthrough:///memory", opts...)
	if err != nil {
		panic(err)
	}
	return conn, func() {
		conn.Close()
		srv.Stop()
		<-served
	}
}

// Two calls an hour for each user, unary calls and streams together. The third
// is denied; health checks are not counted.
func ExampleServerOptions() {
	perUser := algo.Must(algo.NewTokenBucket(algo.PerHour(2)))
	srv := grpc.NewServer(grpcmw.ServerOptions(perUser, rpckey.Metadata("user"), grpcmw.WithName("hourly"))...)
	conn, stop := start(srv)
	defer stop()

	ctx := metadata.AppendToOutgoingContext(context.Background(), "user", "alice")
	for range 3 {
		_, err := testpb.NewTestServiceClient(conn).UnaryCall(ctx, &testpb.SimpleRequest{})
		fmt.Println(status.Code(err))
	}
	_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	fmt.Println(status.Code(err))
	// Output:
	// OK
	// OK
	// ResourceExhausted
	// OK
}

// Messages of streams are charged instead of their opening: here two an hour
// for each client. With WithBackPressure they would wait.
func ExampleStreamServerInterceptor() {
	messages := algo.Must(algo.NewTokenBucket(algo.PerHour(2)))
	conn, stop := start(grpc.NewServer(grpc.ChainStreamInterceptor(
		grpcmw.StreamServerInterceptor(messages, rpckey.PeerIP(),
			grpcmw.WithMissingKey(grpcmw.Shared), // in memory, no caller has an address
			grpcmw.WithStreamMode(grpcmw.PerRecv)))))
	defer stop()

	stream, err := testpb.NewTestServiceClient(conn).FullDuplexCall(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		stream.Send(&testpb.StreamingOutputCallRequest{})
		_, err := stream.Recv() // the service echoes
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// OK
	// ResourceExhausted
}

// Cheap and dear calls against one limit.
func ExampleUnaryServerInterceptor() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
	intercept := grpcmw.UnaryServerInterceptor(limiter, rpckey.Global(),
		grpcmw.WithCost(func(_ context.Context, _ string, msg any) int64 {
			return 1 + int64(msg.(*testpb.SimpleRequest).GetResponseSize())
		}))
	info := &grpc.UnaryServerInfo{FullMethod: "/grpc.testing.TestService/UnaryCall"}
	for _, size := range []int32{0, 7, 3} {
		_, err := intercept(context.Background(), &testpb.SimpleRequest{ResponseSize: size}, info, handle)
		fmt.Println(size, status.Code(err))
	}
	// Output:
	// 0 OK
	// 7 OK
	// 3 ResourceExhausted
}

// A handler that knows the true cost only afterwards corrects it.
func ExampleWithLeaseInContext() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerHour(100)))
	intercept := grpcmw.UnaryServerInterceptor(limiter, rpckey.Global(), grpcmw.WithLeaseInContext())
	handler := func(ctx context.Context, _ any) (any, error) {
		rows := int64(40) // read by the query
		algo.LeaseFrom(ctx).Settle(rows)
		return nil, nil
	}
	info := &grpc.UnaryServerInfo{FullMethod: "/a.B/C"}
	intercept(context.Background(), nil, info, handler)
	lease, _ := limiter.Acquire(context.Background(), "", 0)
	fmt.Println(lease.Remaining)
	// Output: 60
}

// A stream is charged the actual cost of its messages, and ends when the limit is
// spent.
func ExampleWithLeaseInContext_meter() {
	tokens := algo.Must(algo.NewTokenBucket(algo.PerHour(100)))
	intercept := grpcmw.UnaryServerInterceptor(tokens, rpckey.Global(), grpcmw.WithName("tokens"), grpcmw.WithLeaseInContext(),
		grpcmw.WithCost(func(context.Context, string, any) int64 { return 30 })) // the estimate
	handler := func(ctx context.Context, _ any) (any, error) {
		m := meter.From(ctx, "tokens", 25)
		defer m.Close()
		for _, used := range []int64{20, 20, 20, 20, 20, 20} {
			if d, err := m.Reserve(ctx, used); err != nil || !d.Allowed {
				return nil, status.Error(codes.ResourceExhausted, "out of tokens")
			}
			m.Use(used)
		}
		return nil, nil
	}
	_, err := intercept(context.Background(), nil, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"}, handler)
	lease, _ := tokens.Acquire(context.Background(), "", 0)
	fmt.Println(status.Code(err), lease.Remaining)
	// Output: ResourceExhausted 0
}

// Callers without an identity are limited as one, or not let in; never unlimited by accident.
func ExampleWithMissingKey() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	intercept := grpcmw.UnaryServerInterceptor(limiter, rpckey.Metadata("user"),
		grpcmw.WithMissingKey(codes.Unauthenticated))
	info := &grpc.UnaryServerInfo{FullMethod: "/a.B/C"}
	for range 2 {
		_, err := intercept(callContext(), nil, info, handle)
		fmt.Println(status.Code(err))
	}
	// Output:
	// Unauthenticated
	// Unauthenticated
}

// Clients can read the rest of their quota from the trailers.
func ExampleWithRateTrailers() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerMinute(30)))
	conn, stop := start(grpc.NewServer(grpcmw.ServerOptions(limiter, rpckey.Global(), grpcmw.WithRateTrailers())...))
	defer stop()
	var trailer metadata.MD
	_, err := testpb.NewTestServiceClient(conn).UnaryCall(context.Background(), &testpb.SimpleRequest{}, grpc.Trailer(&trailer))
	fmt.Println(err, trailer["ratelimit-policy"], trailer["ratelimit"])
	// Output: <nil> ["30-per-minute";q=30;w=60] ["30-per-minute";r=29;t=2]
}

// A client with a retry policy comes back when the server says so: the second
// call is denied once, and its retry succeeds.
func ExampleServerOptions_retries() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerSecond(5), algo.Burst(1)))
	const policy = `{"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 3, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
		"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]}}]}`
	conn, stop := start(grpc.NewServer(grpcmw.ServerOptions(limiter, rpckey.Global())...),
		grpc.WithDefaultServiceConfig(policy))
	defer stop()

	began := time.Now()
	for range 2 {
		_, err := testpb.NewTestServiceClient(conn).UnaryCall(context.Background(), &testpb.SimpleRequest{})
		fmt.Println(status.Code(err))
	}
	fmt.Println("waited 200 ms:", time.Since(began) > 199*time.Millisecond)
	// Output:
	// OK
	// OK
	// waited 200 ms: true
}

// Events for metrics: the key is never a label.
func ExampleWithObserver() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerMinute(1)))
	intercept := grpcmw.UnaryServerInterceptor(limiter, rpckey.Global(),
		grpcmw.WithObserver(func(e telemetry.Event) { fmt.Println(e.Policy, e.Result, codes.Code(e.Status)) }))
	info := &grpc.UnaryServerInfo{FullMethod: "/a.B/C"}
	for range 2 {
		intercept(context.Background(), nil, info, handle)
	}
	// Output:
	// 1-per-minute allowed OK
	// 1-per-minute denied ResourceExhausted
}

func handle(context.Context, any) (any, error) { return nil, nil }
