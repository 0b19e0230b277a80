package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

func perHour(n int64) *algo.RateLimiter { return algo.Must(algo.NewTokenBucket(algo.PerHour(n))) }

func left(t testing.TB, l algo.Limiter, key string) int64 {
	t.Helper()
	lease, err := l.Acquire(context.Background(), key, 0)
	require.NoError(t, err)
	return lease.Remaining
}

// unaryCall calls once and returns the trailer and the error.
func unaryCall(c testpb.TestServiceClient, opts ...grpc.CallOption) (metadata.MD, error) {
	var trailer metadata.MD
	_, err := c.UnaryCall(context.Background(), &testpb.SimpleRequest{}, append(opts, grpc.Trailer(&trailer))...)
	return trailer, err
}

// Several limits in one decision: all are charged or none, a denial names those
// that had no room, and observers see them.
func TestLimits(t *testing.T) {
	var events []telemetry.Event
	burst, daily, server := perHour(2), perHour(1), perHour(100)
	c := client(t, &service{}, grpcmw.Limits([]grpcmw.Policy{
		{Name: "burst", Limiter: burst, Key: rpckey.PeerIP()},
		{Name: "daily", Limiter: daily, Key: rpckey.PeerIP()},
		{Name: "server", Limiter: server, Key: rpckey.Global(), Cost: func(context.Context, string, any) int64 { return 10 }},
	}, grpcmw.WithRateTrailers(), grpcmw.WithObserver(func(e telemetry.Event) { events = append(events, e) }))...)

	trailer, err := unaryCall(c)
	require.NoError(t, err)
	require.Equal(t, []string{`"burst";r=1;t=1800`, `"daily";r=0;t=3600`, `"server";r=90;t=36`}, trailer["ratelimit"])
	require.Len(t, events, 3)
	require.Equal(t, int64(90), left(t, server, ""))

	trailer, err = unaryCall(c)
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	d := detailsOf(t, err)
	require.Equal(t, "daily", d.info.Metadata["policy"])
	require.Len(t, d.quota.Violations, 1)
	require.Greater(t, d.retry.RetryDelay.AsDuration(), 59*time.Minute)
	require.Len(t, trailer["grpc-retry-pushback-ms"], 1)
	require.Equal(t, int64(1), left(t, burst, "127.0.0.1"), "given back")
	require.Equal(t, int64(90), left(t, server, ""))
	require.Len(t, events, 4)
	require.Equal(t, "daily", events[3].Policy)

	lease, err := burst.Acquire(t.Context(), "127.0.0.1", 1)
	require.NoError(t, err)
	require.True(t, lease.Allowed)
	_, err = unaryCall(c)
	violations := detailsOf(t, err).quota.Violations
	require.Len(t, violations, 2)
	require.Equal(t, "policy burst policy daily", violations[0].Description+" "+violations[1].Description)
}

// The code of several denials: a lack of capacity is UNAVAILABLE, a cost that can
// never fit is not.
func TestLimitsCode(t *testing.T) {
	quota, overload, ever := always(quotaFor(time.Second)), always(overloadFor(2*time.Second)), always(never)
	for name, row := range map[string]struct {
		ls   []algo.Limiter
		want codes.Code
		wait time.Duration
	}{
		"quota":          {[]algo.Limiter{quota, plenty()}, codes.ResourceExhausted, time.Second},
		"overload":       {[]algo.Limiter{overload, plenty()}, codes.Unavailable, 2 * time.Second},
		"overload first": {[]algo.Limiter{overload, quota}, codes.Unavailable, 2 * time.Second},
		"never":          {[]algo.Limiter{ever, overload}, codes.ResourceExhausted, 0},
		"failure":        {[]algo.Limiter{plenty(), failing(errors.New("down"))}, codes.Unavailable, time.Second},
	} {
		ps := []grpcmw.Policy{{Name: "a", Limiter: row.ls[0], Key: rpckey.Global()}, {Name: "b", Limiter: row.ls[1], Key: rpckey.Global()}}
		_, err := unaryCall(client(t, &service{}, grpcmw.Limits(ps)...))
		require.Equal(t, row.want, status.Code(err), name)
		if row.wait == 0 {
			require.Nil(t, detailsOf(t, err).retry, name)
		} else {
			require.GreaterOrEqual(t, detailsOf(t, err).retry.RetryDelay.AsDuration(), row.wait, name)
		}
	}
	require.PanicsWithValue(t, "grpcmw: Limits: there are no policies", func() { grpcmw.Limits(nil) })
	require.PanicsWithValue(t, "grpcmw: Limits: the limiter of policy 1 is nil", func() {
		grpcmw.Limits([]grpcmw.Policy{{Limiter: quota, Key: rpckey.Global()}, {Key: rpckey.Global()}})
	})
	require.PanicsWithValue(t, "grpcmw: Limits: two policies have the name a: give each a Name", func() {
		grpcmw.Limits([]grpcmw.Policy{{Name: "a", Limiter: quota, Key: rpckey.Global()}, {Name: "a", Limiter: ever, Key: rpckey.Global()}})
	})
}

// A policy whose key is missing is left out, and its name reaches another lease no
// more.
func TestLimitsWithoutAKey(t *testing.T) {
	tokens, requests := perHour(3000), perHour(10)
	svc := &service{unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		algo.LeaseFrom(ctx, "tokens").Settle(1500)
		algo.LeaseFrom(ctx, "user").Settle(7)
		return &testpb.SimpleResponse{}, nil
	}}
	c := client(t, svc, grpcmw.Limits([]grpcmw.Policy{
		{Name: "user", Limiter: perHour(5), Key: rpckey.Metadata("x-user")},
		{Name: "requests", Limiter: requests, Key: rpckey.Global()},
		{Name: "tokens", Limiter: tokens, Key: rpckey.Global(), Cost: func(context.Context, string, any) int64 { return 500 }},
	}, grpcmw.WithLeaseInContext(), grpcmw.WithMissingKey(grpcmw.Skip))...)
	_, err := unaryCall(c)
	require.NoError(t, err)
	require.Equal(t, int64(9), left(t, requests, ""))
	require.Equal(t, int64(1500), left(t, tokens, ""))
}

// Streams: the opening and each message are charged to all limits.
func TestLimitsOnStreams(t *testing.T) {
	a, b := perHour(10), perHour(3)
	c := client(t, &service{}, grpcmw.Limits([]grpcmw.Policy{
		{Name: "a", Limiter: a, Key: rpckey.Global()}, {Name: "b", Limiter: b, Key: rpckey.Global()},
	}, grpcmw.WithStreamMode(grpcmw.OnOpen|grpcmw.PerRecv))...)
	stream, err := c.FullDuplexCall(t.Context())
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, stream.Send(&testpb.StreamingOutputCallRequest{ResponseParameters: []*testpb.ResponseParameters{{Size: 1}}}))
		_, err = stream.Recv()
		if i < 2 {
			require.NoError(t, err)
		}
	}
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Len(t, stream.Trailer()["grpc-retry-pushback-ms"], 1)
	require.Equal(t, int64(7), left(t, a, ""), "the opening and two messages")
}

type caller struct{ name, plan string }

type callerKey struct{}

func nameOf(ctx context.Context) (string, bool) {
	c, ok := ctx.Value(callerKey{}).(caller)
	return c.name, ok
}

func planOf(ctx context.Context) (string, bool) {
	c, ok := ctx.Value(callerKey{}).(caller)
	return c.plan, ok
}

// identify takes the part of authentication: it knows two callers by their
// token.
func identify(ctx context.Context) context.Context {
	switch md, _ := metadata.FromIncomingContext(ctx); fmt.Sprint(md["token"]) {
	case "[a]":
		return context.WithValue(ctx, callerKey{}, caller{"alice", "pro"})
	case "[b]":
		return context.WithValue(ctx, callerKey{}, caller{"bob", "free"})
	}
	return ctx
}

type identified struct{ grpc.ServerStream }

func (s identified) Context() context.Context { return identify(s.ServerStream.Context()) }

func identifying() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			return next(identify(ctx), req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			return next(srv, identified{ss})
		}),
	}
}

func TestPlans(t *testing.T) {
	free, pro, anonymous := perHour(1), perHour(3), perHour(1)
	plans := grpcmw.NewPlans(rpckey.Context(planOf), map[string][]grpcmw.Policy{
		"free": {{Limiter: free, Key: rpckey.Context(nameOf)}},
		"pro":  {{Limiter: pro, Key: rpckey.Context(nameOf)}},
		"":     {{Name: "anonymous", Limiter: anonymous, Key: rpckey.PeerIP()}},
	})
	c := client(t, &service{}, append(identifying(), plans.ServerOptions()...)...)
	call := func(token string) error {
		_, err := c.UnaryCall(metadata.AppendToOutgoingContext(t.Context(), "token", token), &testpb.SimpleRequest{})
		return err
	}
	for token, n := range map[string]int{"a": 3, "b": 1, "": 1} {
		for range n {
			require.NoError(t, call(token), token)
		}
		require.Equal(t, codes.ResourceExhausted, status.Code(call(token)), token)
	}
	require.Equal(t, "pro", detailsOf(t, call("a")).info.Metadata["policy"])
	require.Equal(t, "anonymous", detailsOf(t, call("")).info.Metadata["policy"])

	stream, err := c.FullDuplexCall(metadata.AppendToOutgoingContext(t.Context(), "token", "b"))
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.ResourceExhausted, status.Code(err))

	require.NoError(t, plans.Set(map[string][]grpcmw.Policy{"pro": {{Limiter: perHour(2), Key: rpckey.Context(nameOf)}}}))
	require.NoError(t, call("a"))
	require.Equal(t, codes.Unavailable, status.Code(call("")), `no plan ""`)
	stream, err = c.FullDuplexCall(t.Context())
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Len(t, stream.Trailer()["grpc-retry-pushback-ms"], 1)
	require.EqualError(t, plans.Set(map[string][]grpcmw.Policy{"x": nil}), `grpcmw: Plans: plan "x": there are no policies`)

	open := grpcmw.NewPlans(rpckey.Context(planOf), map[string][]grpcmw.Policy{"pro": {{Limiter: pro, Key: rpckey.Global()}}},
		grpcmw.WithFailOpen())
	c = client(t, &service{}, open.ServerOptions()...)
	require.NoError(t, call(""))
	stream, err = c.FullDuplexCall(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.CloseSend())
}

func TestPlansByMethod(t *testing.T) {
	unary := perHour(2)
	plans := grpcmw.NewPlans(rpckey.FullMethod(), map[string][]grpcmw.Policy{
		"/grpc.testing.TestService/UnaryCall": {{Name: "unary", Limiter: unary, Key: rpckey.PeerIP()}},
		"":                                    {{Name: "rest", Limiter: perHour(1), Key: rpckey.PeerIP()}},
	})
	c := client(t, &service{}, plans.ServerOptions()...)
	for range 2 {
		_, err := unaryCall(c)
		require.NoError(t, err)
	}
	_, err := unaryCall(c)
	require.Equal(t, "unary", detailsOf(t, err).info.Metadata["policy"])
	_, err = c.EmptyCall(t.Context(), &testpb.Empty{})
	require.Equal(t, codes.Unimplemented, status.Code(err))
	_, err = c.EmptyCall(t.Context(), &testpb.Empty{})
	require.Equal(t, "rest", detailsOf(t, err).info.Metadata["policy"])
}

// Only failures are counted: the answer of the handler decides.
func TestRefundIf(t *testing.T) {
	answer := codes.OK
	svc := &service{
		unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			return &testpb.SimpleResponse{}, status.Error(answer, "")
		},
		duplex: func(testpb.TestService_FullDuplexCallServer) error { return status.Error(answer, "") },
	}
	l := perHour(2)
	c := client(t, svc, grpcmw.ServerOptions(l, rpckey.Global(),
		grpcmw.WithRefundIf(func(c codes.Code) bool { return c == codes.OK || c == codes.NotFound }))...)
	for _, answer = range []codes.Code{codes.OK, codes.NotFound} {
		for range 5 {
			_, err := unaryCall(c)
			require.Equal(t, answer, status.Code(err))
			stream, err := c.FullDuplexCall(t.Context())
			require.NoError(t, err)
			_, _ = stream.Recv()
		}
	}
	require.Eventually(t, func() bool { return left(t, l, "") == 2 }, 5*time.Second, time.Millisecond)
	answer = codes.Unauthenticated
	for _, want := range []codes.Code{answer, answer, codes.ResourceExhausted} {
		_, err := unaryCall(c)
		require.Equal(t, want, status.Code(err))
	}
}

func TestSkip(t *testing.T) {
	l := always(never)
	c := client(t, &service{}, grpcmw.ServerOptions(l, rpckey.Global(), grpcmw.WithSkip(func(ctx context.Context, method string) bool {
		md, _ := metadata.FromIncomingContext(ctx)
		return method == "/grpc.testing.TestService/UnaryCall" && len(md["internal"]) > 0
	}))...)
	_, err := c.UnaryCall(metadata.AppendToOutgoingContext(t.Context(), "internal", "1"), &testpb.SimpleRequest{})
	require.NoError(t, err)
	_, err = unaryCall(c)
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Len(t, l.asked(), 1)
}

// The status of a denial can be the service's own; the pushback stays.
func TestDenied(t *testing.T) {
	answers := map[string]*status.Status{"own": status.New(codes.FailedPrecondition, "buy more"), "nil": nil, "OK": status.New(codes.OK, "")}
	for name, st := range answers {
		var got *status.Status
		var decision algo.Decision
		c := client(t, &service{}, grpcmw.ServerOptions(always(quotaFor(time.Minute)), rpckey.Global(),
			grpcmw.WithDenied(func(_ context.Context, standard *status.Status, d algo.Decision) *status.Status {
				got, decision = standard, d
				return st
			}))...)
		trailer, err := unaryCall(c)
		require.Equal(t, codes.ResourceExhausted, got.Code())
		require.Equal(t, time.Minute, decision.RetryAfter)
		require.Len(t, trailer["grpc-retry-pushback-ms"], 1)
		if name == "own" {
			require.Equal(t, st.Message(), status.Convert(err).Message())
			require.Equal(t, codes.FailedPrecondition, status.Code(err))
		} else {
			require.Equal(t, codes.ResourceExhausted, status.Code(err), name)
		}
	}
}

func TestMissingKeyCode(t *testing.T) {
	for _, code := range []codes.Code{codes.Unauthenticated, codes.InvalidArgument} {
		var seen telemetry.Event
		c := client(t, &service{}, grpcmw.ServerOptions(plenty(), rpckey.Metadata("x-user"), grpcmw.WithMissingKey(code),
			grpcmw.WithObserver(func(e telemetry.Event) { seen = e }))...)
		_, err := unaryCall(c)
		require.Equal(t, code, status.Code(err))
		d := detailsOf(t, err)
		require.Equal(t, "KEY_MISSING", d.info.Reason)
		require.Nil(t, d.quota)
		require.Nil(t, d.retry)
		require.Error(t, seen.Err)
	}
	require.PanicsWithValue(t, "grpcmw: ServerOptions: WithMissingKey: is 0, want Shared, Skip, or a status from 1 to 16", func() {
		grpcmw.ServerOptions(plenty(), rpckey.Global(), grpcmw.WithMissingKey(codes.OK))
	})
}

// A ban and a quota have different answers.
func TestBansAreNoQuotas(t *testing.T) {
	ban := algo.Must(guard.NewBan(perHour(1), algo.PerMinute(2), time.Hour, time.Hour))
	c := client(t, &service{}, grpcmw.ServerOptions(ban, rpckey.PeerIP())...)
	for range 3 {
		_, _ = unaryCall(c)
	}
	_, err := unaryCall(c)
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Equal(t, "the caller is banned", status.Convert(err).Message())
	d := detailsOf(t, err)
	require.Equal(t, "BANNED", d.info.Reason)
	require.Greater(t, d.retry.RetryDelay.AsDuration(), 59*time.Minute)
}
