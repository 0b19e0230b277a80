package guides_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/grpcmw/client"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// service is a service that comes with grpc-go.
type service struct {
	testpb.UnimplementedTestServiceServer
}

// EmptyCall answers with nothing.
func (service) EmptyCall(context.Context, *testpb.Empty) (*testpb.Empty, error) {
	return &testpb.Empty{}, nil
}

// serve runs srv in memory and connects to it.
func serve(srv *grpc.Server, opts ...grpc.DialOption) (client testpb.TestServiceClient, stop func()) {
	testpb.RegisterTestServiceServer(srv, service{})
	listener := bufconn.Listen(1 << 16)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(listener)
	}()
	conn, err := grpc.NewClient("passthrough:///memory", append(opts,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listener.Dial() }))...)
	if err != nil {
		panic(err)
	}
	return testpb.NewTestServiceClient(conn), func() {
		_ = conn.Close()
		srv.Stop()
		<-served
	}
}

// authInterceptor takes the place of the service's authentication.
func authInterceptor(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if md, found := metadata.FromIncomingContext(ctx); found && len(md["api-key"]) == 1 {
		if u, known := users[md["api-key"][0]]; known {
			ctx = context.WithValue(ctx, contextKey{}, u)
		}
	}
	return next(ctx, req)
}

// Authentication first, then a limit for each user, and by address for strangers.
func Example_grpc() {
	perUser := algo.Must(algo.NewTokenBucket(algo.PerMinute(60), algo.Burst(2)))
	server := grpc.NewServer(append(
		[]grpc.ServerOption{grpc.ChainUnaryInterceptor(authInterceptor)},
		grpcmw.ServerOptions(perUser, rpckey.Or(rpckey.Context(userOf), rpckey.PeerIP()),
			grpcmw.WithName("user"))...)...)

	client, stop := serve(server)
	defer stop()
	for _, key := range []string{"key-a", "key-a", "key-a", "key-b"} {
		ctx := metadata.AppendToOutgoingContext(context.Background(), "api-key", key)
		_, err := client.EmptyCall(ctx, &testpb.Empty{})
		fmt.Println(key, status.Code(err))
	}
	// Output:
	// key-a OK
	// key-a OK
	// key-a ResourceExhausted
	// key-b OK
}

// Two quotas in one decision.
func Example_grpcLimits() {
	perSecond := algo.Must(algo.NewTokenBucket(algo.PerSecond(50)))
	perDay := algo.Must(algo.NewFixedWindow(algo.PerDay(2)))
	server := grpc.NewServer(append(
		[]grpc.ServerOption{grpc.ChainUnaryInterceptor(authInterceptor)},
		grpcmw.Limits([]grpcmw.Policy{
			{Name: "second", Limiter: perSecond, Key: rpckey.Context(userOf)},
			{Name: "day", Limiter: perDay, Key: rpckey.Context(userOf)},
		})...)...)

	client, stop := serve(server)
	defer stop()
	ctx := metadata.AppendToOutgoingContext(context.Background(), "api-key", "key-a")
	for range 3 {
		_, err := client.EmptyCall(ctx, &testpb.Empty{})
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// OK
	// ResourceExhausted
}

// A retry policy of gRPC waits as long as the server asks for.
func Example_grpcRetry() {
	server := grpc.NewServer(grpcmw.ServerOptions(algo.Must(algo.NewTokenBucket(algo.PerSecond(20), algo.Burst(1))), rpckey.Global())...)

	const retries = `{"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
		"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]}}]}`

	client, stop := serve(server, grpc.WithDefaultServiceConfig(retries))
	defer stop()
	for range 2 {
		_, err := client.EmptyCall(context.Background(), &testpb.Empty{})
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// OK
}

// Messages of a stream are charged, and wait for up to 5 s.
func Example_grpcStreams() {
	messages := algo.Must(algo.NewTokenBucket(algo.PerSecond(100)))
	server := grpc.NewServer(grpc.ChainStreamInterceptor(
		grpcmw.StreamServerInterceptor(messages, rpckey.PeerIP(),
			grpcmw.WithStreamMode(grpcmw.OnOpen|grpcmw.PerRecv),
			grpcmw.WithBackPressure(5*time.Second))))

	_ = server
	// Output:
}

// A client that stays within the quota that it was given.
func Example_grpcClient() {
	limiter := algo.Must(algo.NewPacer(algo.PerSecond(46))) // below the server's 50
	options := client.DialOptions(limiter, rpckey.Global())

	fmt.Println(len(options) > 0)
	// Output: true
}
