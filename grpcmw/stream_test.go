package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// echo answers each message, and ends when the client has sent its last.
func echo(ss testpb.TestService_FullDuplexCallServer) error {
	for {
		_, err := ss.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := ss.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

// talk sends n messages one after the other, and counts the answers.
func talk(t *testing.T, s testpb.TestService_FullDuplexCallClient, n int) (answers int, err error) {
	t.Helper()
	for range n {
		s.Send(&testpb.StreamingOutputCallRequest{})
		if _, err := s.Recv(); err != nil {
			return answers, err
		}
		answers++
	}
	require.NoError(t, s.CloseSend())
	_, err = s.Recv()
	return answers, err
}

// How far a stream of five exchanges gets with three units.
func TestStreamModes(t *testing.T) {
	for _, row := range []struct {
		name    string
		mode    grpcmw.StreamMode
		answers int
		charged int
	}{
		{"OnOpen", grpcmw.OnOpen, 5, 1},
		{"PerRecv", grpcmw.PerRecv, 3, 4},
		{"PerSend", grpcmw.PerSend, 3, 4},
		{"OnOpen and PerRecv", grpcmw.OnOpen | grpcmw.PerRecv, 2, 4},
		{"both ways", grpcmw.PerRecv | grpcmw.PerSend, 1, 4},
	} {
		t.Run(row.name, func(t *testing.T) {
			bucket := algo.Must(algo.NewTokenBucket(algo.PerHour(3)))
			var mu sync.Mutex
			var events []telemetry.Event
			c := client(t, &service{duplex: echo}, grpcmw.ServerOptions(bucket, rpckey.Global(), grpcmw.WithStreamMode(row.mode),
				grpcmw.WithObserver(func(e telemetry.Event) {
					mu.Lock()
					defer mu.Unlock()
					events = append(events, e)
				}))...)
			s, err := c.FullDuplexCall(t.Context())
			require.NoError(t, err)
			answers, err := talk(t, s, 5)
			require.Equal(t, row.answers, answers)
			if row.answers == 5 {
				require.ErrorIs(t, err, io.EOF)
			} else {
				require.Equal(t, codes.ResourceExhausted, status.Code(err))
				require.NotNil(t, detailsOf(t, err).retry)
				require.Len(t, s.Trailer()[pushback], 1)
			}
			mu.Lock()
			defer mu.Unlock()
			require.Len(t, events, row.charged)
		})
	}
}

// A handler cannot hide that its stream was cut.
func TestHandlerCannotSwallowTheDenial(t *testing.T) {
	for name, handler := range map[string]func(testpb.TestService_FullDuplexCallServer) error{
		"nil":           func(ss testpb.TestService_FullDuplexCallServer) error { ss.Recv(); return nil },
		"another error": func(ss testpb.TestService_FullDuplexCallServer) error { ss.Recv(); return errors.New("x") },
		"asks again": func(ss testpb.TestService_FullDuplexCallServer) error {
			_, first := ss.Recv()
			if _, err := ss.Recv(); !errors.Is(err, first) {
				return nil
			}
			return first
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, &service{duplex: handler}, grpcmw.ServerOptions(always(quotaFor(time.Hour)), rpckey.Global(), grpcmw.WithStreamMode(grpcmw.PerRecv))...)
			_, trailer, err := exchange(t.Context(), c)
			require.Equal(t, codes.ResourceExhausted, status.Code(err))
			require.Len(t, trailer[pushback], 1)
		})
	}
}

func TestMessageCost(t *testing.T) {
	l := &script{}
	c := client(t, &service{duplex: echo}, grpcmw.ServerOptions(l, rpckey.FullMethod(), grpcmw.WithStreamMode(grpcmw.OnOpen|grpcmw.PerRecv|grpcmw.PerSend),
		grpcmw.WithCost(func(_ context.Context, _ string, msg any) int64 {
			switch msg.(type) {
			case nil:
				return 100
			case *testpb.StreamingOutputCallRequest:
				return 10
			case *testpb.StreamingOutputCallResponse:
				return 1
			}
			return -1
		}))...)
	s, err := c.FullDuplexCall(t.Context())
	require.NoError(t, err)
	_, err = talk(t, s, 2)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []int64{100, 10, 1, 10, 1}, l.costs)
	for _, key := range l.asked() {
		require.Equal(t, "/grpc.testing.TestService/FullDuplexCall", key)
	}
}

// local is a stream without a transport whose messages always arrive.
type local struct {
	noStream
	received, sent int
}

func (l *local) RecvMsg(any) error { l.received++; return nil }
func (l *local) SendMsg(any) error { l.sent++; return nil }

var streamInfo = &grpc.StreamServerInfo{FullMethod: "/a.B/C"}

// run gives a stream to a handler, behind an interceptor.
func run(ctx context.Context, i grpc.StreamServerInterceptor, h func(grpc.ServerStream) error) error {
	return i(nil, &local{noStream: noStream{ctx: ctx}}, streamInfo, func(_ any, ss grpc.ServerStream) error { return h(ss) })
}

// A stream, or a message, that cannot sleep its Delay out is denied and given
// back, whatever becomes of the stream.
func TestDelayedStreamsAreGivenBack(t *testing.T) {
	for name, row := range map[string]struct {
		mode grpcmw.StreamMode
		use  func(grpc.ServerStream) error
	}{
		"opening": {grpcmw.OnOpen, func(grpc.ServerStream) error { return nil }},
		"receive": {grpcmw.PerRecv, func(ss grpc.ServerStream) error { return ss.RecvMsg(nil) }},
		"send":    {grpcmw.PerSend, func(ss grpc.ServerStream) error { return ss.SendMsg(nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			l := always(algo.Decision{Allowed: true, Delay: time.Hour})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := run(ctx, grpcmw.StreamServerInterceptor(l, rpckey.Global(), grpcmw.WithStreamMode(row.mode)), row.use)
			require.Equal(t, codes.ResourceExhausted, status.Code(err))
			require.Equal(t, []algo.Outcome{algo.Canceled}, l.released())
		})
	}
}

// Back-pressure: messages wait for their quota, in exact time.
func TestBackPressure(t *testing.T) {
	for _, row := range []struct {
		name     string
		most     time.Duration
		deadline time.Duration
		decision *algo.Decision // nil: a bucket of 10 a second
		messages int            // that pass, of 30
		took     time.Duration
		code     codes.Code
	}{
		{"as long as it takes", algo.Forever, time.Hour, nil, 30, 2 * time.Second, codes.OK},
		{"without it", 0, time.Hour, nil, 10, 0, codes.ResourceExhausted},
		{"long enough", 100 * time.Millisecond, time.Hour, nil, 30, 2 * time.Second, codes.OK},
		{"too short", 99 * time.Millisecond, time.Hour, nil, 10, 0, codes.ResourceExhausted},
		{"until the deadline", algo.Forever, 1050 * time.Millisecond, nil, 20, time.Second, codes.ResourceExhausted},
		{"overload does not wait", algo.Forever, time.Hour, ptr(overloadFor(time.Millisecond)), 0, 0, codes.Unavailable},
		{"never does not wait", algo.Forever, time.Hour, &never, 0, 0, codes.ResourceExhausted},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l algo.Limiter = algo.Must(algo.NewTokenBucket(algo.PerSecond(10)))
				if row.decision != nil {
					l = always(*row.decision)
				}
				opts := []grpcmw.Option{grpcmw.WithStreamMode(grpcmw.PerRecv)}
				if row.most > 0 {
					opts = append(opts, grpcmw.WithBackPressure(row.most))
				}
				ctx, cancel := context.WithTimeout(t.Context(), row.deadline)
				defer cancel()
				started, passed := time.Now(), 0
				err := run(ctx, grpcmw.StreamServerInterceptor(l, rpckey.Global(), opts...), func(ss grpc.ServerStream) error {
					for range 30 {
						if err := ss.RecvMsg(nil); err != nil {
							return err
						}
						passed++
					}
					return nil
				})
				require.Equal(t, row.code, status.Code(err))
				require.Equal(t, row.messages, passed)
				require.Equal(t, row.took, time.Since(started))
			})
		})
	}
}

func ptr[T any](v T) *T { return &v }

// A limiter that denies without giving a time is asked once.
func TestBackPressureDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := always(quotaFor(0))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
		defer cancel()
		err := run(ctx, grpcmw.StreamServerInterceptor(l, rpckey.Global(), grpcmw.WithStreamMode(grpcmw.PerRecv), grpcmw.WithBackPressure(algo.Forever)),
			func(ss grpc.ServerStream) error { return ss.RecvMsg(nil) })
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		require.Len(t, l.asked(), 1)
	})
}

// The sender feels it: messages that the handler has not asked for stay in
// flow control.
func TestBackPressureReachesTheSender(t *testing.T) {
	inHandler := make(chan struct{})
	svc := &service{input: func(ss testpb.TestService_StreamingInputCallServer) error {
		for {
			if _, err := ss.Recv(); err != nil {
				return err
			}
			inHandler <- struct{}{}
		}
	}}
	bucket := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	c := client(t, svc, grpcmw.ServerOptions(bucket, rpckey.Global(), grpcmw.WithStreamMode(grpcmw.PerRecv), grpcmw.WithBackPressure(algo.Forever))...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := c.StreamingInputCall(ctx)
	require.NoError(t, err)
	big := &testpb.StreamingInputCallRequest{Payload: &testpb.Payload{Body: make([]byte, 1<<20)}}
	blocked := make(chan int)
	go func() {
		sent := 0
		for s.Send(big) == nil {
			sent++
		}
		blocked <- sent
	}()
	<-inHandler
	select {
	case <-inHandler:
		require.Fail(t, "a second message passed")
	case <-blocked:
		require.Fail(t, "the stream ended")
	case <-time.After(100 * time.Millisecond):
	}
	cancel()
	require.Less(t, <-blocked, 20, "20 MiB were sent into a stream without a reader")
}

func TestStreamKeys(t *testing.T) {
	noKey := keyless(keyfunc.ErrNoKey)
	for _, row := range []struct {
		name   string
		policy codes.Code
		asked  []string
		code   codes.Code
	}{
		{"Shared", grpcmw.Shared, []string{"~missing", "~missing"}, codes.OK},
		{"Skip", grpcmw.Skip, nil, codes.OK},
		{"Deny", codes.Unauthenticated, nil, codes.Unauthenticated},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := &script{}
			i := grpcmw.StreamServerInterceptor(l, noKey, grpcmw.WithMissingKey(row.policy), grpcmw.WithStreamMode(grpcmw.OnOpen|grpcmw.PerRecv))
			err := run(t.Context(), i, func(ss grpc.ServerStream) error { return ss.RecvMsg(nil) })
			require.Equal(t, row.code, status.Code(err))
			require.Equal(t, row.asked, l.asked())
		})
	}
}
