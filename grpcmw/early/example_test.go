package early_test

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/grpcmw/early"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// The tap handle goes with the interceptors, with the same limiter and key, and
// denies earlier the calls that they would deny.
func ExampleTapHandle() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	handle := early.TapHandle(limiter, rpckey.Global())
	srv := grpc.NewServer(append(grpcmw.ServerOptions(limiter, rpckey.Global()), grpc.InTapHandle(handle))...)
	defer srv.Stop()

	for range 2 { // as the server does
		_, err := handle(context.Background(), &tap.Info{FullMethodName: "/a.B/C"})
		fmt.Println(status.Code(err))
		limiter.Allow("", 1) // as the interceptors do
	}
	// Output:
	// OK
	// ResourceExhausted
}

// A server's own methods are denied early; others get the server's answer.
func ExampleWithRegistered() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	var srv *grpc.Server
	registered := early.WithRegistered(func() map[string]grpc.ServiceInfo { return srv.GetServiceInfo() })
	srv = grpc.NewServer(append(grpcmw.ServerOptions(limiter, rpckey.FullMethod()),
		grpc.InTapHandle(early.TapHandle(limiter, rpckey.FullMethod(), registered)))...)
	defer srv.Stop()
	fmt.Println(srv != nil)
	// Output: true
}
