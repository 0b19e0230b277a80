package grpcmw_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	pacing "github.com/sluice-go/sluice/grpcmw/client"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// storms is how many calls go wrong in each of these tests.
func storms() int { return max(cases.Count(10_000, 100_000), 1000) }

// recovering are the interceptors around limiters in a real server.
func recovering() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (_ any, err error) {
			defer func() {
				if recover() != nil {
					err = status.Error(codes.Internal, "panic")
				}
			}()
			return h(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) (err error) {
			defer func() {
				if recover() != nil {
					err = status.Error(codes.Internal, "panic")
				}
			}()
			return h(srv, ss)
		}),
	}
}

// storm calls f n times, from 32 goroutines.
func storm(n int, f func()) {
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range n / 32 {
				f()
			}
		})
	}
	wg.Wait()
}

// everyStreamMode takes a slot for the stream and for each message.
var everyStreamMode = grpcmw.WithStreamMode(grpcmw.OnOpen | grpcmw.PerRecv | grpcmw.PerSend)

func TestC1_PanicsFreeTheSlot(t *testing.T) {
	s := &slots{limit: 64}
	c := client(t, &service{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) { panic("unary") }},
		append(recovering(), grpcmw.ServerOptions(s, rpckey.PeerIP(), everyStreamMode)...)...)
	storm(storms(), func() {
		if _, _, err := call(t.Context(), c); status.Code(err) != codes.Internal {
			t.Error(err)
		}
	})
	s.requireIdle(t)
	require.Equal(t, s.acquired.Load(), s.outcomes[algo.Failed].Load())
	require.GreaterOrEqual(t, s.acquired.Load(), int64(storms()-32))
	t.Logf("C1: grpc: %d calls that panic", storms())
}

func TestC1_PanicsFreeTheSlotsOfStreams(t *testing.T) {
	s := &slots{limit: 128}
	c := client(t, &service{duplex: func(ss testpb.TestService_FullDuplexCallServer) error {
		ss.Recv()
		panic("stream")
	}}, append(recovering(), grpcmw.ServerOptions(s, rpckey.PeerIP(), everyStreamMode)...)...)
	storm(storms()/4, func() {
		if _, _, err := exchange(t.Context(), c); status.Code(err) != codes.Internal {
			t.Error(err)
		}
	})
	s.requireIdle(t)
}

// A handler may leave through runtime.Goexit, as t.FailNow does.
func TestC1_GoexitFreesTheSlot(t *testing.T) {
	s := &slots{limit: 64}
	unary := grpcmw.UnaryServerInterceptor(s, rpckey.Global())
	stream := grpcmw.StreamServerInterceptor(s, rpckey.Global(), everyStreamMode)
	storm(storms(), func() {
		var wg sync.WaitGroup
		wg.Go(func() {
			unary(t.Context(), nil, callInfo, func(context.Context, any) (any, error) { runtime.Goexit(); return nil, nil })
		})
		wg.Go(func() {
			run(t.Context(), stream, func(ss grpc.ServerStream) error {
				ss.RecvMsg(nil)
				runtime.Goexit()
				return nil
			})
		})
		wg.Wait()
	})
	s.requireIdle(t)
	t.Logf("C1: grpc: %d calls that exit", storms())
}

// Panics around the handler free the slot too.
func TestC1_ForeignPanicsFreeTheSlot(t *testing.T) {
	s := &slots{limit: 64}
	observer := grpcmw.WithObserver(func(telemetry.Event) { panic("observer") })
	unary := grpcmw.UnaryServerInterceptor(s, rpckey.Global(), observer)
	require.Panics(t, func() { unary(t.Context(), nil, callInfo, bareHandler) })
	for _, mode := range []grpcmw.StreamMode{grpcmw.OnOpen, grpcmw.PerRecv, grpcmw.PerSend} {
		stream := grpcmw.StreamServerInterceptor(s, rpckey.Global(), observer, grpcmw.WithStreamMode(mode))
		require.Panics(t, func() {
			run(t.Context(), stream, func(ss grpc.ServerStream) error {
				ss.SendMsg(nil)
				return ss.RecvMsg(nil)
			})
		})
	}
	s.requireIdle(t)
}

// The slot is held until the handler returns, not until the client gives up:
// the work goes on until then.
func TestC1_CancellationsFreeTheSlot(t *testing.T) {
	s := &slots{limit: 64}
	var working, most int64
	var mu sync.Mutex
	count := func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		working += n
		most = max(most, working)
	}
	c := client(t, &service{unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		count(1)
		defer count(-1)
		<-ctx.Done()
		runtime.Gosched()
		return nil, ctx.Err()
	}}, grpcmw.ServerOptions(s, rpckey.PeerIP())...)
	storm(storms(), func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(1000))*time.Microsecond)
		defer cancel()
		call(ctx, c)
	})
	require.Eventually(t, func() bool { // a call may still arrive after its client has left
		mu.Lock()
		defer mu.Unlock()
		return working == 0
	}, 10*time.Second, time.Millisecond)
	s.requireIdle(t)
	mu.Lock()
	defer mu.Unlock()
	require.LessOrEqual(t, most, s.limit)
	require.Zero(t, s.outcomes[algo.Succeeded].Load())
	t.Logf("C1: grpc: %d calls that are canceled", storms())
}

func TestC1_ResetsFreeTheSlots(t *testing.T) {
	server, dialed := &slots{limit: 128}, &slots{limit: 1 << 20}
	addr := serve(t, &service{duplex: echo}, grpcmw.ServerOptions(server, rpckey.PeerIP(), everyStreamMode)...)
	c := testpb.NewTestServiceClient(dial(t, addr, pacing.DialOptions(dialed, rpckey.Global())...))
	storm(storms(), func() {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, err := c.FullDuplexCall(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		s.Send(&testpb.StreamingOutputCallRequest{})
		if rand.IntN(2) == 0 {
			s.Recv()
		}
	})
	server.requireIdle(t)
	dialed.requireIdle(t)
	require.Zero(t, server.outcomes[algo.Succeeded].Load()+server.outcomes[algo.Failed].Load())
	t.Logf("C1: grpc: %d streams that are reset", storms())
}

// Stopping the server under load frees everything as well.
func TestC1_StopFreesTheSlots(t *testing.T) {
	s := &slots{limit: 64}
	begun := make(chan struct{}, 64)
	t.Run("serve", func(t *testing.T) {
		c := client(t, &service{unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}}, grpcmw.ServerOptions(s, rpckey.PeerIP())...)
		for range 20 {
			go call(context.Background(), c)
		}
		for range 20 {
			<-begun
		}
	})
	s.requireIdle(t)
	require.EqualValues(t, 20, s.acquired.Load())
}

// The same in a real server, which never answers such a call.
func TestC1_GoexitInServerFreesTheSlot(t *testing.T) {
	s := &slots{limit: 64}
	c := client(t, &service{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		runtime.Goexit()
		return nil, nil
	}}, grpcmw.ServerOptions(s, rpckey.PeerIP())...)
	storm(320, func() {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		call(ctx, c)
	})
	s.requireIdle(t)
}
