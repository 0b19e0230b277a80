package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// ask makes one call of a method behind an interceptor.
func ask(ctx context.Context, intercept grpc.UnaryServerInterceptor, method string) codes.Code {
	_, err := intercept(ctx, &testpb.SimpleRequest{}, &grpc.UnaryServerInfo{FullMethod: method}, handle)
	return status.Code(err)
}

// Calls of the status page are free, like the health check.
func ExampleWithExempt() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	intercept := grpcmw.UnaryServerInterceptor(limiter, rpckey.Global(),
		grpcmw.WithExempt("/status.v1.Status/*"))
	for _, method := range []string{"/shop.v1.Shop/Buy", "/shop.v1.Shop/Buy", "/status.v1.Status/Get"} {
		fmt.Println(method, ask(context.Background(), intercept, method))
	}
	// Output:
	// /shop.v1.Shop/Buy OK
	// /shop.v1.Shop/Buy ResourceExhausted
	// /status.v1.Status/Get OK
}

// Calls that cannot be decided are served rather than refused.
func ExampleWithFailOpen() {
	broken := keyfunc.RPC(func(context.Context, string) (string, error) { return "", errors.New("out of order") })
	limiter := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	for _, opts := range [][]grpcmw.Option{nil, {grpcmw.WithFailOpen()}} {
		intercept := grpcmw.UnaryServerInterceptor(limiter, broken, opts...)
		fmt.Println(ask(context.Background(), intercept, "/shop.v1.Shop/Buy"))
	}
	// Output:
	// Unavailable
	// OK
}

// Messages that come too fast wait; the sender feels it by flow control.
func ExampleWithBackPressure() {
	messages := algo.Must(algo.NewTokenBucket(algo.PerSecond(50), algo.Burst(1)))
	conn, stop := start(grpc.NewServer(grpc.ChainStreamInterceptor(
		grpcmw.StreamServerInterceptor(messages, rpckey.Global(),
			grpcmw.WithStreamMode(grpcmw.PerRecv),
			grpcmw.WithBackPressure(time.Minute)))))
	defer stop()

	stream, err := testpb.NewTestServiceClient(conn).FullDuplexCall(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	began := time.Now()
	for range 3 {
		stream.Send(&testpb.StreamingOutputCallRequest{})
		_, err := stream.Recv() // the service echoes
		fmt.Println(status.Code(err))
	}
	fmt.Println(time.Since(began) > 35*time.Millisecond)
	// Output:
	// OK
	// OK
	// OK
	// true
}
