package client_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/grpcmw/client"
	"github.com/sluice-go/sluice/internal/workshop/grpctest"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// invoke makes one call of a client without a network.
func invoke(ctx context.Context, i grpc.UnaryClientInterceptor, err error) error {
	return i(ctx, "/a.B/C", nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		return err
	})
}

// A client is paced, in exact time, and fails at once if a wait is useless.
func TestClientPacing(t *testing.T) {
	for _, row := range []struct {
		name     string
		limiter  func() algo.Limiter
		deadline time.Duration
		opts     []client.Option
		passed   int // of 30
		took     time.Duration
		code     codes.Code
		text     string
	}{
		{"10 a second", tenPerSecond, time.Hour, nil, 30, 2 * time.Second, codes.OK, ""},
		{"10 a second, with delays", delaying, time.Hour, nil, 30, 2 * time.Second, codes.OK, ""},
		{"until the deadline", tenPerSecond, 1050 * time.Millisecond, nil, 20, time.Second, codes.ResourceExhausted, "client side: rate limit exceeded"},
		{"with delays, until the deadline", delaying, 1050 * time.Millisecond, nil, 20, time.Second, codes.ResourceExhausted, "client side: rate limit exceeded"},
		{"overload", func() algo.Limiter { return always(overload) }, time.Hour, nil, 0, 0, codes.Unavailable, "client side: the server cannot take the call at the moment"},
		{"never", func() algo.Limiter { return always(never) }, time.Hour, nil, 0, 0, codes.ResourceExhausted, "client side: the call costs more than its rate limit can ever admit"},
		{"limiter fails", func() algo.Limiter { return failing(errors.New("secret")) }, time.Hour, nil, 0, 0, codes.Unavailable, "client side: the server cannot take the call at the moment"},
		{"limiter fails, FailOpen", func() algo.Limiter { return failing(errors.New("secret")) }, time.Hour, []client.Option{client.WithFailOpen()}, 30, 0, codes.OK, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := client.UnaryClientInterceptor(row.limiter(), rpckey.FullMethod(), row.opts...)
				ctx, cancel := context.WithTimeout(t.Context(), row.deadline)
				defer cancel()
				started, passed := time.Now(), 0
				var err error
				for range 30 {
					if err = invoke(ctx, i, nil); err != nil {
						break
					}
					passed++
				}
				require.Equal(t, row.passed, passed)
				require.Equal(t, row.took, time.Since(started))
				require.Equal(t, row.code, status.Code(err))
				require.Equal(t, row.text, status.Convert(err).Message())
			})
		})
	}
}

func tenPerSecond() algo.Limiter { return algo.Must(algo.NewTokenBucket(algo.PerSecond(10))) }

func delaying() algo.Limiter {
	return algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.MaxWait(algo.Forever)))
}

func TestClientCanceledWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := delaying()
		for range 10 {
			l.Acquire(t.Context(), "", 1)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		err := invoke(ctx, client.UnaryClientInterceptor(l, rpckey.Global()), nil)
		require.Equal(t, codes.Canceled, status.Code(err))
		lease, _ := l.Acquire(t.Context(), "", 1)
		require.Equal(t, 50*time.Millisecond, lease.Delay, "the canceled call keeps its place")
	})
}

// The outcomes for the client's limiter: an answer is a success of the server.
func TestC2_ClientOutcomes(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, row := range []struct {
		name string
		ctx  context.Context
		err  error
		want algo.Outcome
	}{
		{"success", t.Context(), nil, algo.Succeeded},
		{"not found", t.Context(), status.Error(codes.NotFound, ""), algo.Succeeded},
		{"invalid argument", t.Context(), status.Error(codes.InvalidArgument, ""), algo.Succeeded},
		{"unavailable", t.Context(), status.Error(codes.Unavailable, ""), algo.Failed},
		{"resource exhausted", t.Context(), status.Error(codes.ResourceExhausted, ""), algo.Failed},
		{"deadline", t.Context(), status.Error(codes.DeadlineExceeded, ""), algo.Failed},
		{"canceled here", canceled, status.Error(codes.Canceled, ""), algo.Failed | algo.Untimed},
		{"canceled there", t.Context(), status.Error(codes.Canceled, ""), algo.Failed | algo.Untimed},
		{"not a status", t.Context(), errors.New("x"), algo.Failed},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := admitting()
			i := client.UnaryClientInterceptor(l, rpckey.Global())
			require.Equal(t, row.err, i(row.ctx, "/a.B/C", nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				if row.ctx == canceled {
					cancel()
				}
				return row.err
			}))
			require.Equal(t, []algo.Outcome{row.want}, l.outcomes)
		})
	}
}

// DialOptions on a real connection, unary and streams; the server sees only
// the admitted calls.
func TestDialOptions(t *testing.T) {
	svc := &grpctest.Service{}
	bucket := algo.Must(algo.NewTokenBucket(algo.PerHour(2)))
	conn := grpctest.Dial(t, grpctest.Serve(t, svc), client.DialOptions(bucket, rpckey.Service())...)
	c := testpb.NewTestServiceClient(conn)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := c.UnaryCall(ctx, &testpb.SimpleRequest{})
	require.NoError(t, err)
	s, err := c.FullDuplexCall(ctx)
	require.NoError(t, err)
	for range 5 {
		require.NoError(t, s.Send(&testpb.StreamingOutputCallRequest{}))
		_, err = s.Recv()
		require.NoError(t, err)
	}

	_, err = c.UnaryCall(ctx, &testpb.SimpleRequest{})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	info := status.Convert(err).Details()[0].(*errdetails.ErrorInfo)
	require.Equal(t, "RATE_LIMIT_EXCEEDED", info.Reason)
	require.Equal(t, "2-per-hour", info.Metadata["policy"])
	_, err = c.FullDuplexCall(ctx)
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.EqualValues(t, 2, svc.Begun.Load())
}

// A server that calls another one and passes its own client's denial on has
// not been denied itself.
func TestClientDenialInAServer(t *testing.T) {
	outer := admitting()
	i := grpcmw.UnaryServerInterceptor(outer, rpckey.Global())
	dialed := client.UnaryClientInterceptor(always(never), rpckey.Global())
	_, err := i(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"}, func(ctx context.Context, _ any) (any, error) { return nil, invoke(ctx, dialed, nil) })
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Equal(t, []algo.Outcome{algo.Failed | algo.Untimed}, outer.outcomes)
}

// However a stream ends, its slot is free again.
func TestC1_ClientStreamEnds(t *testing.T) {
	addr := grpctest.Serve(t, &grpctest.Service{})
	failing := grpctest.Serve(t, &grpctest.Service{Duplex: func(testpb.TestService_FullDuplexCallServer) error {
		return status.Error(codes.Internal, "")
	}})
	for name, row := range map[string]struct {
		addr string
		use  func(context.Context, context.CancelFunc, testpb.TestServiceClient)
	}{
		"read to the end": {addr, func(ctx context.Context, _ context.CancelFunc, c testpb.TestServiceClient) {
			s, _ := c.FullDuplexCall(ctx)
			s.CloseSend()
			s.Recv()
		}},
		"canceled": {addr, func(ctx context.Context, cancel context.CancelFunc, c testpb.TestServiceClient) {
			c.FullDuplexCall(ctx)
			cancel()
		}},
		"fails": {failing, func(ctx context.Context, _ context.CancelFunc, c testpb.TestServiceClient) {
			s, _ := c.FullDuplexCall(ctx)
			s.Recv()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := admitting()
			c := testpb.NewTestServiceClient(grpctest.Dial(t, row.addr, client.DialOptions(l, rpckey.Global())...))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			row.use(ctx, cancel, c)
			l.requireIdle(t, 1)
			require.Equal(t, []algo.Outcome{algo.Succeeded | algo.Untimed}, l.outcomes)
		})
	}
}

// A streamer that fails or panics leaves nothing behind.
func TestC1_ClientStreamerFails(t *testing.T) {
	s := admitting()
	i := client.StreamClientInterceptor(s, rpckey.Global())
	open := func(streamer grpc.Streamer) (grpc.ClientStream, error) {
		return i(t.Context(), &grpc.StreamDesc{}, nil, "/a.B/C", streamer)
	}
	boom := errors.New("boom")
	stream, err := open(func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
		return nil, boom
	})
	require.Equal(t, boom, err)
	require.Nil(t, stream)
	require.Panics(t, func() {
		open(func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			panic("boom")
		})
	})
	s.requireIdle(t, 2)
}

// An observer that panics leaves no slot behind.
func TestC1_PanickingObserver(t *testing.T) {
	l := admitting()
	boom := client.WithObserver(func(telemetry.Event) { panic("observer") })
	unary := client.UnaryClientInterceptor(l, rpckey.Global(), boom)
	require.PanicsWithValue(t, "observer", func() { unary(t.Context(), "/a/B", nil, nil, nil, nil) })
	stream := client.StreamClientInterceptor(l, rpckey.Global(), boom)
	require.PanicsWithValue(t, "observer", func() { stream(t.Context(), &grpc.StreamDesc{}, nil, "/a/B", nil) })
	l.requireIdle(t, 2)
}

// The event of a call says how long it waited, and with which status it failed.
func TestClientEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e telemetry.Event
		start := time.Now()
		bucket := algo.Must(algo.NewTokenBucket(algo.Every(7 * time.Second)))
		i := client.UnaryClientInterceptor(bucket, rpckey.Global(), client.WithName("partner"),
			client.WithObserver(func(got telemetry.Event) { e = got }))
		require.NoError(t, invoke(t.Context(), i, nil))
		require.NoError(t, invoke(t.Context(), i, nil))
		require.Equal(t, 7*time.Second, e.Waited)
		require.Equal(t, start.Add(7*time.Second), e.At)
		require.True(t, e.Client)
		require.Equal(t, "partner /a.B/C allowed", e.Policy+" "+e.Method+" "+e.Result.String())
		require.Equal(t, telemetry.Sent{}, e.Sent)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Error(t, invoke(ctx, i, nil))
		require.Equal(t, telemetry.Denied, e.Result)
		require.Equal(t, int(codes.ResourceExhausted), e.Status)
		require.Equal(t, algo.Quota, e.Decision.Reason)
		require.ErrorIs(t, e.Err, algo.ErrWait)
	})
}

// Mistakes are seen when a client is put together, never on a call.
func TestWiring(t *testing.T) {
	for message, wire := range map[string]func(){
		"client: DialOptions: the limiter is nil":                                                                    func() { client.DialOptions(nil, rpckey.Global()) },
		"client: DialOptions: the key function is nil; rpckey.Global gives all calls one limit":                      func() { client.DialOptions(admitting(), nil) },
		"client: DialOptions: WithServerWait: is nil":                                                                func() { client.DialOptions(admitting(), rpckey.Global(), client.WithServerWait(nil)) },
		`grpcmw: DenialError: WithName: "a b" has characters other than letters, digits, dot, underscore and hyphen`: func() { client.DialOptions(admitting(), rpckey.Global(), client.WithName("a b")) },
	} {
		require.PanicsWithValue(t, message, wire)
	}
	skipped := client.UnaryClientInterceptor(always(never), rpckey.Global(),
		client.WithSkip(func(_ context.Context, method string) bool { return method == "/a.B/C" }))
	require.NoError(t, invoke(t.Context(), skipped, nil))
	free := client.UnaryClientInterceptor(always(never), rpckey.Global(), client.WithCost(func(context.Context, string, any) int64 { return -1 }))
	require.Equal(t, codes.Unavailable, status.Code(invoke(t.Context(), free, nil)))
}
