package client_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw/client"
	"github.com/sluice-go/sluice/internal/workshop/grpctest"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

const asked = 300 * time.Millisecond

// withRetryInfo is a status that asks to wait.
func withRetryInfo(c codes.Code, d time.Duration) error {
	st, err := status.New(c, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(d)})
	if err != nil {
		panic(err)
	}
	return st.Err()
}

// onceDenied is a server whose first call asks the client to wait, and the times
// at which calls reach it.
func onceDenied(t *testing.T, answer func(ctx context.Context) error) (addr string, arrivals func() []time.Time) {
	t.Helper()
	var mu sync.Mutex
	var times []time.Time
	next := func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if times = append(times, time.Now()); len(times) == 1 {
			return answer(ctx)
		}
		return nil
	}
	svc := &grpctest.Service{
		Unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			return &testpb.SimpleResponse{}, next(ctx)
		},
		Duplex: func(ss testpb.TestService_FullDuplexCallServer) error { return next(ss.Context()) },
	}
	return grpctest.Serve(t, svc), func() []time.Time {
		mu.Lock()
		defer mu.Unlock()
		return append([]time.Time(nil), times...)
	}
}

// A client sends nothing before the time that the server has asked for, and a call
// that cannot wait that long fails at once.
func TestClientObeysTheServer(t *testing.T) {
	unary := func(ctx context.Context, c testpb.TestServiceClient) error {
		_, err := c.UnaryCall(ctx, &testpb.SimpleRequest{})
		return err
	}
	stream := func(ctx context.Context, c testpb.TestServiceClient) error {
		s, err := c.FullDuplexCall(ctx)
		if err != nil {
			return err
		}
		if _, err = s.Recv(); err != nil && status.Code(err) != codes.Unknown {
			return err
		}
		return nil
	}
	for name, row := range map[string]struct {
		answer func(context.Context) error
		call   func(context.Context, testpb.TestServiceClient) error
		waits  bool
	}{
		"RetryInfo":   {func(context.Context) error { return withRetryInfo(codes.ResourceExhausted, asked) }, unary, true},
		"unavailable": {func(context.Context) error { return withRetryInfo(codes.Unavailable, asked) }, unary, true},
		"stream":      {func(context.Context) error { return withRetryInfo(codes.ResourceExhausted, asked) }, stream, true},
		"pushback": {func(ctx context.Context) error {
			_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "300"))
			return status.Error(codes.ResourceExhausted, "")
		}, unary, true},
		"no retry": {func(ctx context.Context) error {
			_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "-1"))
			return status.Error(codes.ResourceExhausted, "")
		}, unary, false},
		"a quota's header": {func(ctx context.Context) error {
			_ = grpc.SetHeader(ctx, metadata.Pairs("x-ratelimit-remaining", "0", "x-ratelimit-reset", "300ms"))
			return status.Error(codes.Internal, "")
		}, unary, true},
		"a quota's trailer on a stream": {func(ctx context.Context) error {
			_ = grpc.SetTrailer(ctx, metadata.Pairs("retry-after-ms", "300"))
			return status.Error(codes.Internal, "")
		}, stream, true},
		"a quota's header on a stream": {func(ctx context.Context) error {
			_ = grpc.SetHeader(ctx, metadata.Pairs("x-ratelimit-remaining", "0", "x-ratelimit-reset", "300ms"))
			return status.Error(codes.Internal, "")
		}, stream, true},
		"other code":    {func(context.Context) error { return withRetryInfo(codes.Aborted, asked) }, unary, false},
		"its own limit": {func(context.Context) error { return status.Error(codes.ResourceExhausted, "client side: x") }, unary, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var events []telemetry.Event
			addr, arrivals := onceDenied(t, row.answer)
			c := testpb.NewTestServiceClient(grpctest.Dial(t, addr, client.DialOptions(admitting(), rpckey.Global(), client.WithServerWait(client.QuotaWait), client.WithObserver(func(e telemetry.Event) {
				mu.Lock()
				defer mu.Unlock()
				events = append(events, e)
			}))...))
			require.Error(t, row.call(t.Context(), c))
			denied := time.Now()
			if !row.waits {
				require.NoError(t, row.call(t.Context(), c))
				return
			}
			short, cancel := context.WithTimeout(t.Context(), asked/2)
			defer cancel()
			err := row.call(short, c)
			require.Equal(t, codes.ResourceExhausted, status.Code(err))
			require.Contains(t, status.Convert(err).Message(), "client side: the server asked to wait")
			details := status.Convert(err).Details()
			require.Positive(t, details[len(details)-1].(*errdetails.RetryInfo).RetryDelay.AsDuration())
			require.NoError(t, short.Err(), "at once")
			require.Len(t, arrivals(), 1, "it was not sent")

			require.NoError(t, row.call(t.Context(), c))
			require.Len(t, arrivals(), 2)
			require.GreaterOrEqual(t, arrivals()[1].Sub(arrivals()[0]), asked)
			require.Greater(t, time.Since(denied), asked/2)
			mu.Lock()
			defer mu.Unlock()
			require.Len(t, events, 3)
			require.Equal(t, telemetry.Denied, events[1].Result)
			require.ErrorIs(t, events[1].Err, algo.ErrWait)
		})
	}
}

// A pushback that is too long for a number is the longest wait.
func TestClientObeysAnEndlessPushback(t *testing.T) {
	addr, arrivals := onceDenied(t, func(ctx context.Context) error {
		_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "99999999999999999999"))
		return status.Error(codes.ResourceExhausted, "")
	})
	c := testpb.NewTestServiceClient(grpctest.Dial(t, addr, client.DialOptions(admitting(), rpckey.Global())...))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 {
		_, err := c.UnaryCall(ctx, &testpb.SimpleRequest{})
		require.Error(t, err)
	}
	require.Len(t, arrivals(), 1)
}

// Only the key that was asked waits; a canceled call is canceled.
func TestClientObeysByKey(t *testing.T) {
	addr, arrivals := onceDenied(t, func(context.Context) error { return withRetryInfo(codes.ResourceExhausted, time.Hour) })
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
	c := testpb.NewTestServiceClient(grpctest.Dial(t, addr, client.DialOptions(l, rpckey.FullMethod())...))
	short, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	_, err := c.UnaryCall(short, &testpb.SimpleRequest{})
	require.Error(t, err)
	_, err = c.UnaryCall(short, &testpb.SimpleRequest{})
	require.Contains(t, status.Convert(err).Message(), "the server asked to wait")
	lease, err := l.Acquire(t.Context(), testpb.TestService_UnaryCall_FullMethodName, 0)
	require.NoError(t, err)
	require.EqualValues(t, 9, lease.Remaining, "not charged")
	_, err = c.FullDuplexCall(t.Context())
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(arrivals()) == 2 }, 5*time.Second, time.Millisecond)

	patient := testpb.NewTestServiceClient(grpctest.Dial(t, addr, client.DialOptions(admitting(), rpckey.Global())...))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = patient.UnaryCall(ctx, &testpb.SimpleRequest{})
	require.Equal(t, codes.Canceled, status.Code(err))
	require.False(t, errors.Is(err, algo.ErrWait))
}

// Calls that wait for the limiter when the server asks to wait do not start
// together afterwards: they keep the limit.
func TestClientKeepsTheLimitAfterAServerWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var starts []time.Time
		invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			mu.Lock()
			defer mu.Unlock()
			if starts = append(starts, time.Now()); len(starts) == 1 {
				time.Sleep(50 * time.Millisecond) // the others are in line meanwhile
				return withRetryInfo(codes.ResourceExhausted, time.Second)
			}
			return nil
		}
		limiter := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(1)))
		paced := client.UnaryClientInterceptor(limiter, rpckey.Global())
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { _ = paced(t.Context(), "/s/m", nil, nil, nil, invoke) })
		}
		wg.Wait()
		require.Len(t, starts, 20)
		require.GreaterOrEqual(t, starts[1].Sub(starts[0]), time.Second)
		for i := 2; i < len(starts); i++ {
			require.GreaterOrEqual(t, starts[i].Sub(starts[i-1]), 100*time.Millisecond, "start %d", i)
		}
		require.LessOrEqual(t, starts[19].Sub(starts[0]), 3*time.Second, "the wait took nothing from the limit")
	})
}
