package client_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw/client"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// A connection whose calls wait by themselves.
func ExampleDialOptions() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerSecond(50)))
	options := append(client.DialOptions(limiter, rpckey.Service()), grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient("dns:///orders.internal:443", options...)
	fmt.Println(err, conn.Close())
	// Output: <nil> <nil>
}

// A call that its deadline does not allow is not sent.
func ExampleUnaryClientInterceptor() {
	perHour := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	call := client.UnaryClientInterceptor(perHour, rpckey.Global())
	send := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for range 2 {
		err := call(ctx, "/a.B/C", nil, nil, nil, send)
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// ResourceExhausted
}

// The opening of streams is paced alike.
func ExampleStreamClientInterceptor() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerSecond(2)))
	option := grpc.WithChainStreamInterceptor(client.StreamClientInterceptor(limiter, rpckey.FullMethod()))
	fmt.Println(option != nil)
	// Output: true
}

// A client of a service that says in metadata of its own when a quota is back.
func ExampleWithServerWait() {
	call := client.UnaryClientInterceptor(algo.Unlimited(), rpckey.Global(), client.WithServerWait(client.QuotaWait))
	send := func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
		for _, o := range opts {
			if header, ok := o.(grpc.HeaderCallOption); ok {
				*header.HeaderAddr = metadata.Pairs("x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6m0s")
			}
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for range 2 {
		fmt.Println(status.Code(call(ctx, "/a.B/C", nil, nil, nil, send)))
	}
	// Output:
	// OK
	// ResourceExhausted
}
