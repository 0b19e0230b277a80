package grpcmw_test

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// Two calls an hour for each user, and three for all together.
func ExampleLimits() {
	perUser := algo.Must(algo.NewTokenBucket(algo.PerHour(2)))
	total := algo.Must(algo.NewTokenBucket(algo.PerHour(3)))
	srv := grpc.NewServer(grpcmw.Limits([]grpcmw.Policy{
		{Name: "user", Limiter: perUser, Key: rpckey.Metadata("user")},
		{Name: "total", Limiter: total, Key: rpckey.Global()},
	})...)
	conn, stop := start(srv)
	defer stop()

	for _, user := range []string{"alice", "alice", "alice", "bob", "bob"} {
		ctx := metadata.AppendToOutgoingContext(context.Background(), "user", user)
		_, err := testpb.NewTestServiceClient(conn).UnaryCall(ctx, &testpb.SimpleRequest{})
		fmt.Println(user, status.Code(err))
	}
	// Output:
	// alice OK
	// alice OK
	// alice ResourceExhausted
	// bob OK
	// bob ResourceExhausted
}

// Limits by plan, and for anonymous callers by address.
func ExampleNewPlans() {
	free := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	pro := algo.Must(algo.NewTokenBucket(algo.PerHour(2)))
	anonymous := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	plans := grpcmw.NewPlans(rpckey.Context(planOf), map[string][]grpcmw.Policy{
		"free": {{Limiter: free, Key: rpckey.Context(nameOf)}},
		"pro":  {{Limiter: pro, Key: rpckey.Context(nameOf)}},
		"":     {{Name: "anonymous", Limiter: anonymous, Key: rpckey.PeerIP()}},
	})
	conn, stop := start(grpc.NewServer(append(identifying(), plans.ServerOptions()...)...))
	defer stop()

	for _, token := range []string{"a", "b", ""} { // alice is pro, bob is free
		ctx := metadata.AppendToOutgoingContext(context.Background(), "token", token)
		var codes []codes.Code
		for range 3 {
			_, err := testpb.NewTestServiceClient(conn).UnaryCall(ctx, &testpb.SimpleRequest{})
			codes = append(codes, status.Code(err))
		}
		fmt.Println(codes)
	}
	// Output:
	// [OK OK ResourceExhausted]
	// [OK ResourceExhausted ResourceExhausted]
	// [OK ResourceExhausted ResourceExhausted]
}

// Limits by method, replaced while calls are served.
func ExamplePlans_Set() {
	perHour := func(n int64) []grpcmw.Policy {
		return []grpcmw.Policy{{Limiter: algo.Must(algo.NewTokenBucket(algo.PerHour(n))), Key: rpckey.Global()}}
	}
	plans := grpcmw.NewPlans(rpckey.FullMethod(), map[string][]grpcmw.Policy{"": perHour(1)})
	conn, stop := start(grpc.NewServer(plans.ServerOptions()...))
	defer stop()

	call := func() {
		_, err := testpb.NewTestServiceClient(conn).UnaryCall(context.Background(), &testpb.SimpleRequest{})
		fmt.Println(status.Code(err))
	}
	call()
	call()
	err := plans.Set(map[string][]grpcmw.Policy{testpb.TestService_UnaryCall_FullMethodName: perHour(10), "": perHour(1)})
	fmt.Println(err)
	call()
	// Output:
	// OK
	// ResourceExhausted
	// <nil>
	// OK
}

// Only calls that found nothing are counted, against scans.
func ExampleWithRefundIf() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	intercept := grpcmw.UnaryServerInterceptor(limiter, rpckey.Global(),
		grpcmw.WithRefundIf(func(c codes.Code) bool { return c != codes.NotFound }))
	for range 3 {
		fmt.Println(ask(context.Background(), intercept, "/shop.v1.Shop/Buy"))
	}
	// Output:
	// OK
	// OK
	// OK
}

// Calls of the service's own jobs are not limited.
func ExampleWithSkip() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	intercept := grpcmw.UnaryServerInterceptor(limiter, rpckey.Global(),
		grpcmw.WithSkip(func(ctx context.Context, _ string) bool {
			name, _ := nameOf(ctx) // found by authentication
			return name == "job"
		}))
	job := context.WithValue(context.Background(), callerKey{}, caller{name: "job"})
	for _, ctx := range []context.Context{job, job, context.Background(), context.Background()} {
		fmt.Println(ask(ctx, intercept, "/shop.v1.Shop/Buy"))
	}
	// Output:
	// OK
	// OK
	// OK
	// ResourceExhausted
}

// A denial in the service's own words.
func ExampleWithDenied() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	intercept := grpcmw.UnaryServerInterceptor(limiter, rpckey.Global(),
		grpcmw.WithDenied(func(_ context.Context, st *status.Status, d algo.Decision) *status.Status {
			if d.Reason != algo.Quota {
				return st
			}
			return status.Newf(codes.ResourceExhausted, "%d calls an hour are free", d.Limit)
		}))
	for range 2 {
		_, err := intercept(context.Background(), nil, &grpc.UnaryServerInfo{FullMethod: "/shop.v1.Shop/Buy"}, handle)
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// rpc error: code = ResourceExhausted desc = 1 calls an hour are free
}

// A call that is denied, or fails for lack of capacity, is answered with a default.
func ExampleUnaryServerInterceptor_fallback() {
	limiter := algo.Must(adaptive.New(adaptive.Fixed(1)))
	_ = algo.Must(limiter.Acquire(context.Background(), "", 1)) // it is full
	limit := grpcmw.UnaryServerInterceptor(limiter, rpckey.Global())
	fallback := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		answer, err := handler(ctx, req)
		if status.Code(err) == codes.Unavailable {
			return "the usual recommendations", nil
		}
		return answer, err
	}
	// grpc.ChainUnaryInterceptor(fallback, limit) of a server
	info := &grpc.UnaryServerInfo{FullMethod: "/shop.v1.Shop/Recommend"}
	fmt.Println(fallback(context.Background(), nil, info, func(ctx context.Context, req any) (any, error) {
		return limit(ctx, req, info, handle)
	}))
	// Output: the usual recommendations <nil>
}

// The cost of a call is known when its message is read.
func ExampleDenialError() {
	rows := algo.Must(algo.NewTokenBucket(algo.PerHour(1000)))
	export := func(ctx context.Context, user string, n int64) error {
		lease, _ := rows.Acquire(ctx, user, n) // an error is answered with UNAVAILABLE
		if err := grpcmw.DenialError(ctx, rows, user, lease.Decision, grpcmw.WithName("rows")); err != nil {
			return err
		}
		defer lease.Release(algo.Succeeded)
		return nil
	}

	fmt.Println(export(context.Background(), "alice", 800))
	fmt.Println(export(context.Background(), "alice", 800))
	// Output:
	// <nil>
	// rpc error: code = ResourceExhausted desc = rate limit exceeded
}

// A call without the tenant that it is for is invalid.
func ExampleWithMissingKey_code() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	intercept := grpcmw.UnaryServerInterceptor(limiter, rpckey.Metadata("tenant"),
		grpcmw.WithMissingKey(codes.InvalidArgument))
	fmt.Println(ask(context.Background(), intercept, "/shop.v1.Shop/Buy"))
	// Output: InvalidArgument
}
