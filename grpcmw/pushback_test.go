package grpcmw_test

import (
	"context"
	"math"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// transport records the trailers of a call.
type transport struct {
	mu     sync.Mutex
	trails []metadata.MD
}

func (r *transport) Method() string               { return callInfo.FullMethod }
func (r *transport) SetHeader(metadata.MD) error  { panic("a header is set") }
func (r *transport) SendHeader(metadata.MD) error { panic("a header is sent") }
func (r *transport) SetTrailer(md metadata.MD) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trails = append(r.trails, md)
	return nil
}

// pushed is the one pushback that was set.
func (r *transport) pushed(t require.TestingT) int64 {
	require.Len(t, r.trails, 1)
	require.Len(t, r.trails[0][pushback], 1)
	ms, err := strconv.ParseInt(r.trails[0][pushback][0], 10, 64)
	require.NoError(t, err)
	return ms
}

// pushedFor is the pushback of a call that is denied for wait and has left, in
// time that does not pass.
func pushedFor(t *testing.T, wait, left time.Duration) (ms int64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := t.Context(), func() {}
		if left < algo.Forever {
			ctx, cancel = context.WithTimeout(ctx, left)
		}
		defer cancel()
		r := new(transport)
		ctx = grpc.NewContextWithServerTransportStream(ctx, r)
		err := intercept(ctx, grpcmw.UnaryServerInterceptor(always(quotaFor(wait)), rpckey.Global()))
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		ms = r.pushed(t)
	})
	return ms
}

// For any wait and any deadline: never early, at most 20 % or 5 s late, inside
// int32, and -1 exactly when the caller would not live to see the retry.
func TestPushbackProperty(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		wait := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(r, "wait"))
		if rapid.Bool().Draw(r, "short") {
			wait = wait%time.Minute + 1
		}
		left := algo.Forever
		if rapid.Bool().Draw(r, "deadline") {
			left = time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(r, "left"))
		}
		ms := pushedFor(t, wait, left)
		if ms == -1 {
			require.Greater(r, wait, left-left%time.Millisecond-time.Millisecond)
			return
		}
		told := time.Duration(ms) * time.Millisecond
		require.Less(r, wait, left)
		require.Less(r, told, left)
		require.LessOrEqual(r, ms, int64(math.MaxInt32))
		if ms < math.MaxInt32 {
			require.GreaterOrEqual(r, told, wait)
		}
		require.LessOrEqual(r, told, wait+min(wait/5, 5*time.Second)+time.Millisecond)
	})
}

func TestPushbackEdges(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		wait, left time.Duration
		want       int64
	}{
		{1, algo.Forever, 1},
		{1, ms, -1},
		{1, 2 * ms, 1},
		{2 * ms, 2 * ms, -1},
		{3 * ms, 2 * ms, -1},
		{4 * ms, 5 * ms, 4},
		{algo.Forever, algo.Forever, -1},
		{algo.Forever, time.Hour, -1},
		{algo.Forever / 2, algo.Forever, math.MaxInt32},
		{math.MaxInt32 * ms, algo.Forever, math.MaxInt32},
	} {
		got := pushedFor(t, row.wait, row.left)
		if row.want == 4 { // with jitter, which must not lead to the deadline
			require.Contains(t, []int64{4, -1}, got)
			continue
		}
		require.Equal(t, row.want, got, "%v of %v", row.wait, row.left)
	}
}

// The jitter spreads clients: none comes early, and they do not come together.
func TestJitterSpreads(t *testing.T) {
	seen := make(map[int64]bool)
	for range 200 {
		r := new(transport)
		ctx := grpc.NewContextWithServerTransportStream(t.Context(), r)
		intercept(ctx, grpcmw.UnaryServerInterceptor(always(quotaFor(10*time.Second)), rpckey.Global()))
		seen[r.pushed(t)] = true
	}
	require.Greater(t, len(seen), 100)
}

func TestWithoutTransport(t *testing.T) {
	err := intercept(t.Context(), grpcmw.UnaryServerInterceptor(always(never), rpckey.Global()))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
}

// twice is an interceptor that calls on again after a failure.
func twice(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
	if resp, err := h(ctx, req); err == nil {
		return resp, nil
	}
	return h(ctx, req)
}

// Whatever is stacked, one value reaches the client: two would stop its
// retries.
func TestOnePushback(t *testing.T) {
	short, long := always(quotaFor(40*time.Millisecond)), always(quotaFor(4*time.Second))
	global := rpckey.Global()
	// The outer limit denies the received message, and the inner one the
	// answer that the handler sends nevertheless.
	received, sent := grpcmw.WithStreamMode(grpcmw.PerRecv), grpcmw.WithStreamMode(grpcmw.PerSend)
	swallow := &service{duplex: func(ss testpb.TestService_FullDuplexCallServer) error {
		ss.Recv()
		ss.Send(&testpb.StreamingOutputCallResponse{})
		ss.Recv()
		return nil
	}}
	join := func(all ...[]grpc.ServerOption) (joined []grpc.ServerOption) {
		for _, o := range all {
			joined = append(joined, o...)
		}
		return joined
	}
	for _, row := range []struct {
		name     string
		opts     []grpc.ServerOption
		ask      func(context.Context, testpb.TestServiceClient) (metadata.MD, metadata.MD, error)
		min, max int
	}{
		{"outer denies", join(grpcmw.ServerOptions(short, global), grpcmw.ServerOptions(long, global)), call, 40, 48},
		{"inner denies", join(grpcmw.ServerOptions(plenty(), global), grpcmw.ServerOptions(short, global)), call, 40, 48},
		{"inner denies twice", join(grpcmw.ServerOptions(plenty(), global), []grpc.ServerOption{grpc.ChainUnaryInterceptor(twice)}, grpcmw.ServerOptions(short, global)), call, 40, 48},
		{"stream, outer denies", join(grpcmw.ServerOptions(short, global), grpcmw.ServerOptions(long, global)), callStream, 40, 48},
		{"stream, inner denies", join(grpcmw.ServerOptions(plenty(), global), grpcmw.ServerOptions(short, global)), callStream, 40, 48},
		{"messages both ways, longest outside", join(grpcmw.ServerOptions(long, global, received), grpcmw.ServerOptions(short, global, sent)), exchange, 4000, 4800},
		{"messages both ways, longest inside", join(grpcmw.ServerOptions(short, global, received), grpcmw.ServerOptions(long, global, sent)), exchange, 4000, 4800},
		{"messages both ways, never outside", join(grpcmw.ServerOptions(always(never), global, received), grpcmw.ServerOptions(long, global, sent)), exchange, -1, -1},
		{"messages both ways, never inside", join(grpcmw.ServerOptions(long, global, received), grpcmw.ServerOptions(always(never), global, sent)), exchange, -1, -1},
	} {
		t.Run(row.name, func(t *testing.T) {
			header, trailer, err := row.ask(t.Context(), client(t, swallow, row.opts...))
			require.Equal(t, codes.ResourceExhausted, status.Code(err))
			require.Len(t, trailer[pushback], 1)
			ms, _ := strconv.Atoi(trailer[pushback][0])
			require.GreaterOrEqual(t, ms, row.min)
			require.LessOrEqual(t, ms, row.max)
			requireNoHeader(t, header)
		})
	}
}

// exchange sends a message, and reads the answer.
func exchange(ctx context.Context, c testpb.TestServiceClient) (header, trailer metadata.MD, err error) {
	s, err := c.FullDuplexCall(ctx)
	if err != nil {
		return nil, nil, err
	}
	s.Send(&testpb.StreamingOutputCallRequest{})
	s.CloseSend()
	_, err = s.Recv()
	header, _ = s.Header()
	return header, s.Trailer(), err
}

// A call that an inner limit denies stays charged to the outer ones, and is canceled where the
// outcome matters.
func TestDeniedFurtherIn(t *testing.T) {
	for name, ask := range map[string]func(context.Context, testpb.TestServiceClient) (metadata.MD, metadata.MD, error){
		"unary": call, "stream": callStream,
	} {
		t.Run(name, func(t *testing.T) {
			outer, inFlight := algo.Must(algo.NewTokenBucket(algo.PerHour(9))), &slots{limit: 9}
			opts := append(grpcmw.ServerOptions(outer, rpckey.Global()), grpcmw.ServerOptions(inFlight, rpckey.Global())...)
			opts = append(opts, grpcmw.ServerOptions(always(quotaFor(time.Second)), rpckey.Global())...)
			c := client(t, &service{}, opts...)
			for range 7 {
				_, _, err := ask(t.Context(), c)
				require.Equal(t, codes.ResourceExhausted, status.Code(err))
			}
			inFlight.requireIdle(t)
			require.EqualValues(t, 7, inFlight.outcomes[algo.Canceled].Load())
			lease, err := outer.Acquire(t.Context(), "", 0)
			require.NoError(t, err)
			require.EqualValues(t, 2, lease.Remaining)
		})
	}
}
