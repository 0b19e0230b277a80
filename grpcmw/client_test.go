package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// invoke makes one call of a client without a network.
func invoke(ctx context.Context, i grpc.UnaryClientInterceptor, err error) error {
	return i(ctx, callInfo.FullMethod, nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		return err
	})
}

// A client is paced, in exact time, and fails at once if a wait is useless.
func TestClientPacing(t *testing.T) {
	for _, row := range []struct {
		name     string
		limiter  func() algo.Limiter
		deadline time.Duration
		opts     []grpcmw.Option
		passed   int // of 30
		took     time.Duration
		code     codes.Code
		text     string
	}{
		{"10 a second", tenPerSecond, time.Hour, nil, 30, 2 * time.Second, codes.OK, ""},
		{"10 a second, with delays", delaying, time.Hour, nil, 30, 2 * time.Second, codes.OK, ""},
		{"until the deadline", tenPerSecond, 1050 * time.Millisecond, nil, 20, time.Second, codes.ResourceExhausted, "client side: rate limit exceeded: the wait would outlast the deadline"},
		{"with delays, until the deadline", delaying, 1050 * time.Millisecond, nil, 20, time.Second, codes.ResourceExhausted, "client side: rate limit exceeded: the wait would outlast the deadline"},
		{"short of patience", tenPerSecond, time.Hour, []grpcmw.Option{grpcmw.WithMaxWait(50 * time.Millisecond)}, 10, 0, codes.ResourceExhausted, "client side: rate limit exceeded"},
		{"without patience", tenPerSecond, time.Hour, []grpcmw.Option{grpcmw.WithMaxWait(0)}, 10, 0, codes.ResourceExhausted, "client side: rate limit exceeded"},
		{"overload", func() algo.Limiter { return always(overloadFor(time.Millisecond)) }, time.Hour, nil, 0, 0, codes.Unavailable, "client side: the server cannot take the call at the moment"},
		{"never", func() algo.Limiter { return always(never) }, time.Hour, nil, 0, 0, codes.ResourceExhausted, "client side: the call costs more than its rate limit can ever admit"},
		{"limiter fails", func() algo.Limiter { return failing(errors.New("secret")) }, time.Hour, nil, 0, 0, codes.Unavailable, "client side: the server cannot take the call at the moment"},
		{"limiter fails, FailOpen", func() algo.Limiter { return failing(errors.New("secret")) }, time.Hour, []grpcmw.Option{grpcmw.WithOnError(grpcmw.FailOpen)}, 30, 0, codes.OK, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := grpcmw.UnaryClientInterceptor(row.limiter(), rpckey.FullMethod(), row.opts...)
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
		err := invoke(ctx, grpcmw.UnaryClientInterceptor(l, rpckey.Global()), nil)
		require.Equal(t, codes.Canceled, status.Code(err))
		lease, _ := l.Acquire(t.Context(), "", 1)
		require.Equal(t, 50*time.Millisecond, lease.Delay, "the canceled call keeps its place")
	})
}

// The outcomes for the client's limiter: an answer is a success of the server.
func TestC2_ClientOutcomes(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
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
			l := &script{}
			require.Equal(t, row.err, invoke(row.ctx, grpcmw.UnaryClientInterceptor(l, rpckey.Global()), row.err))
			require.Equal(t, []algo.Outcome{row.want}, l.released())
		})
	}
}

// DialOptions on a real connection, unary and streams; the server sees only
// the admitted calls.
func TestDialOptions(t *testing.T) {
	svc := &service{duplex: echo}
	bucket := algo.Must(algo.NewTokenBucket(algo.PerHour(2)))
	conn := dial(t, serve(t, svc), grpcmw.DialOptions(bucket, rpckey.Service(), grpcmw.WithMaxWait(0))...)
	c := testpb.NewTestServiceClient(conn)
	_, _, err := call(t.Context(), c)
	require.NoError(t, err)
	s, err := c.FullDuplexCall(t.Context())
	require.NoError(t, err)
	answers, err := talk(t, s, 5)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, 5, answers)

	_, _, err = call(t.Context(), c)
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Equal(t, "RATE_LIMIT_EXCEEDED", detailsOf(t, err).info.Reason)
	_, err = c.FullDuplexCall(t.Context())
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	_, err = healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	require.EqualValues(t, 2, svc.begun.Load())
}

// A server that calls another one and passes its own client's denial on has
// not been denied itself.
func TestClientDenialInAServer(t *testing.T) {
	outer := &script{}
	i := grpcmw.UnaryServerInterceptor(outer, rpckey.Global())
	dialed := grpcmw.UnaryClientInterceptor(always(never), rpckey.Global())
	_, err := i(t.Context(), nil, callInfo, func(ctx context.Context, _ any) (any, error) { return nil, invoke(ctx, dialed, nil) })
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Equal(t, []algo.Outcome{algo.Failed}, outer.released())
}

// How far messages get on a client that is short of units.
func TestClientStreamModes(t *testing.T) {
	for _, row := range []struct {
		name    string
		mode    grpcmw.StreamMode
		answers int
	}{
		{"OnOpen", grpcmw.OnOpen, 5},
		{"PerSend", grpcmw.PerSend, 3},
		{"PerRecv", grpcmw.PerRecv, 3},
		{"both ways", grpcmw.PerRecv | grpcmw.PerSend, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := algo.Must(algo.NewTokenBucket(algo.PerHour(3)))
			inFlight := &slots{limit: 100}
			addr := serve(t, &service{duplex: echo})
			opts := append(grpcmw.DialOptions(inFlight, rpckey.Global(), everyStreamMode),
				grpcmw.DialOptions(l, rpckey.Global(), grpcmw.WithStreamMode(row.mode), grpcmw.WithMaxWait(time.Second))...)
			c := testpb.NewTestServiceClient(dial(t, addr, opts...))
			s, err := c.FullDuplexCall(t.Context())
			require.NoError(t, err)
			answers, err := talk(t, s, 5)
			require.Equal(t, row.answers, answers)
			if row.answers == 5 {
				require.ErrorIs(t, err, io.EOF)
			} else {
				require.Equal(t, codes.ResourceExhausted, status.Code(err))
				require.Contains(t, err.Error(), "client side: rate limit exceeded")
				require.Error(t, s.Send(&testpb.StreamingOutputCallRequest{}))
				require.Error(t, s.Context().Err(), "the stream goes on")
			}
			inFlight.requireIdle(t)
		})
	}
}

// However a stream ends, its slot is free again.
func TestC1_ClientStreamEnds(t *testing.T) {
	addr := serve(t, &service{
		duplex: echo,
		output: func(in *testpb.StreamingOutputCallRequest, ss testpb.TestService_StreamingOutputCallServer) error {
			ss.Send(&testpb.StreamingOutputCallResponse{})
			return status.Error(codes.Internal, "")
		},
		input: func(ss testpb.TestService_StreamingInputCallServer) error {
			ss.Recv()
			return ss.SendAndClose(&testpb.StreamingInputCallResponse{})
		},
	})
	for name, use := range map[string]func(context.Context, context.CancelFunc, testpb.TestServiceClient){
		"read to the end": func(ctx context.Context, _ context.CancelFunc, c testpb.TestServiceClient) {
			s, _ := c.FullDuplexCall(ctx)
			talk(t, s, 2)
		},
		"canceled": func(ctx context.Context, cancel context.CancelFunc, c testpb.TestServiceClient) {
			c.FullDuplexCall(ctx)
			cancel()
		},
		"fails": func(ctx context.Context, _ context.CancelFunc, c testpb.TestServiceClient) {
			s, _ := c.StreamingOutputCall(ctx, &testpb.StreamingOutputCallRequest{})
			for {
				if _, err := s.Recv(); err != nil {
					return
				}
			}
		},
		"one answer": func(ctx context.Context, _ context.CancelFunc, c testpb.TestServiceClient) {
			s, _ := c.StreamingInputCall(ctx)
			s.Send(&testpb.StreamingInputCallRequest{})
			s.CloseAndRecv()
		},
		"never opened": func(ctx context.Context, cancel context.CancelFunc, c testpb.TestServiceClient) {
			cancel()
			c.FullDuplexCall(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &slots{limit: 10}
			c := testpb.NewTestServiceClient(dial(t, addr, grpcmw.DialOptions(s, rpckey.Global(), everyStreamMode)...))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			use(ctx, cancel, c)
			s.requireIdle(t)
			require.NotZero(t, s.acquired.Load())
		})
	}
}

// A streamer that fails or panics leaves nothing behind.
func TestC1_ClientStreamerFails(t *testing.T) {
	s := &slots{limit: 10}
	i := grpcmw.StreamClientInterceptor(s, rpckey.Global())
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
	s.requireIdle(t)
	require.EqualValues(t, 2, s.acquired.Load())
}

func TestClientStreamExempt(t *testing.T) {
	conn := dial(t, serve(t, &service{}), grpcmw.DialOptions(always(never), rpckey.Global(),
		grpcmw.WithExempt(healthpb.Health_Watch_FullMethodName))...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = watch.Recv()
	require.NoError(t, err)
}
