package grpcmw_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

const pushback = "grpc-retry-pushback-ms"

// call makes one unary call and returns the metadata of the answer.
func call(ctx context.Context, c testpb.TestServiceClient) (header, trailer metadata.MD, err error) {
	_, err = c.UnaryCall(ctx, &testpb.SimpleRequest{}, grpc.Header(&header), grpc.Trailer(&trailer))
	return header, trailer, err
}

// callStream opens a stream, and waits for the answer to it.
func callStream(ctx context.Context, c testpb.TestServiceClient) (header, trailer metadata.MD, err error) {
	s, err := c.FullDuplexCall(ctx)
	if err != nil {
		return nil, nil, err
	}
	s.CloseSend()
	_, err = s.Recv()
	header, _ = s.Header()
	return header, s.Trailer(), err
}

// Every denial, as it reaches the client of a real server.
func TestDenials(t *testing.T) {
	for _, row := range []struct {
		name     string
		decision algo.Decision
		key      keyfunc.RPC
		code     codes.Code
		reason   string
		wait     time.Duration // 0: there is no RetryInfo
		subject  string        // "": there is no QuotaFailure
		most     int           // pushback is between wait and this, in ms
	}{
		{"quota", quotaFor(100 * time.Millisecond), rpckey.Global(), codes.ResourceExhausted, "RATE_LIMIT_EXCEEDED", 100 * time.Millisecond, "global", 120},
		{"quota of an address", quotaFor(time.Second), rpckey.PeerIP(), codes.ResourceExhausted, "RATE_LIMIT_EXCEEDED", time.Second, "address", 1200},
		{"quota of a method", quotaFor(time.Second), rpckey.FullMethod(), codes.ResourceExhausted, "RATE_LIMIT_EXCEEDED", time.Second, "method", 1200},
		{"quota of a user", quotaFor(time.Minute), named("alice"), codes.ResourceExhausted, "RATE_LIMIT_EXCEEDED", time.Minute, "caller", 65_000},
		{"a nanosecond", quotaFor(1), rpckey.Global(), codes.ResourceExhausted, "RATE_LIMIT_EXCEEDED", 1, "global", 1},
		{"jitter is bounded", quotaFor(time.Hour), rpckey.Global(), codes.ResourceExhausted, "RATE_LIMIT_EXCEEDED", time.Hour, "global", 3605_000},
		{"beyond int32", quotaFor(1000 * time.Hour), rpckey.Global(), codes.ResourceExhausted, "RATE_LIMIT_EXCEEDED", 1000 * time.Hour, "global", 1<<31 - 1},
		{"no time given", quotaFor(0), rpckey.Global(), codes.ResourceExhausted, "RATE_LIMIT_EXCEEDED", time.Second, "global", 1200},
		{"overload", overloadFor(50 * time.Millisecond), rpckey.PeerIP(), codes.Unavailable, "SERVER_OVERLOADED", 50 * time.Millisecond, "", 60},
		{"never", never, rpckey.Global(), codes.ResourceExhausted, "RATE_LIMIT_EXCEEDED", 0, "global", -1},
	} {
		t.Run(row.name, func(t *testing.T) {
			svc := &service{}
			c := client(t, svc, grpcmw.ServerOptions(always(row.decision), row.key, grpcmw.WithName("p"))...)
			for name, ask := range map[string]func(context.Context, testpb.TestServiceClient) (metadata.MD, metadata.MD, error){
				"unary": call, "stream": callStream,
			} {
				header, trailer, err := ask(t.Context(), c)
				require.Equal(t, row.code, status.Code(err), name)
				d := detailsOf(t, err)
				require.Equal(t, row.reason, d.info.Reason, name)
				require.Equal(t, "sluice", d.info.Domain, name)
				require.Equal(t, map[string]string{"policy": "p"}, d.info.Metadata, name)
				requireSubject(t, row.subject, d)
				requireWait(t, row.wait, row.most, d, trailer)
				requireNoHeader(t, header)
			}
			require.Zero(t, svc.begun.Load())
		})
	}
}

// TestDenialsForLackOfCapacity: UNAVAILABLE, however the limit is composed and whatever the key.
func TestDenialsForLackOfCapacity(t *testing.T) {
	capacity, table := algo.Must(adaptive.New(adaptive.Fixed(10))), algo.Must(adaptive.PerKey(5, adaptive.WithMaxKeys(1)))
	for _, full := range []algo.Request{{Limiter: capacity, Key: "other", N: 10}, {Limiter: table, Key: "other", N: 1}} {
		lease, err := algo.AcquireAll(t.Context(), full)
		require.NoError(t, err)
		require.True(t, lease.Allowed)
	}
	for name, l := range map[string]algo.Limiter{
		"capacity behind slots per key": algo.All(algo.Must(adaptive.PerKey(5)), capacity), "too many keys": table,
	} {
		require.Equal(t, codes.Unavailable, status.Code(intercept(t.Context(), grpcmw.UnaryServerInterceptor(l, named("k")))), name)
	}
}

func requireSubject(t *testing.T, want string, d details) {
	t.Helper()
	if want == "" {
		require.Nil(t, d.quota)
		return
	}
	require.Len(t, d.quota.Violations, 1)
	require.Equal(t, want, d.quota.Violations[0].Subject)
}

// requireWait checks RetryInfo and the one pushback: never early, and at most
// a fifth late.
func requireWait(t *testing.T, wait time.Duration, most int, d details, trailer metadata.MD) {
	t.Helper()
	require.Len(t, trailer[pushback], 1)
	ms, err := strconv.Atoi(trailer[pushback][0])
	require.NoError(t, err)
	require.LessOrEqual(t, ms, most)
	if wait == 0 {
		require.Nil(t, d.retry)
		require.Equal(t, -1, ms)
		return
	}
	told := d.retry.RetryDelay.AsDuration()
	require.GreaterOrEqual(t, told, wait)
	require.LessOrEqual(t, told, wait+min(wait/5, 5*time.Second)+time.Millisecond-1) // whole milliseconds
	require.GreaterOrEqual(t, int64(ms), min(wait.Milliseconds(), 1<<31-1))
	require.NotZero(t, ms)
}

// requireNoHeader: a header that a server sends before the message commits the client
// to the attempt.
func requireNoHeader(t *testing.T, header metadata.MD) {
	t.Helper()
	for name := range header {
		require.Contains(t, []string{"content-type"}, name)
	}
}

func TestAdmittedCallsHaveNoHeader(t *testing.T) {
	svc := &service{duplex: func(testpb.TestService_FullDuplexCallServer) error { return nil }}
	c := client(t, svc, grpcmw.ServerOptions(plenty(), rpckey.PeerIP(), grpcmw.WithRateTrailers(), grpcmw.WithLeaseInContext())...)
	header, trailer, err := call(t.Context(), c)
	require.NoError(t, err)
	requireNoHeader(t, header)
	require.Empty(t, trailer[pushback])
	header, trailer, err = callStream(t.Context(), c)
	require.ErrorContains(t, err, "EOF")
	requireNoHeader(t, header)
	require.Empty(t, trailer[pushback])
}

// named gives every call the same key.
func named(key string) keyfunc.RPC {
	return func(context.Context, string) (string, error) { return key, nil }
}

// keyless has err for every call.
func keyless(err error) keyfunc.RPC {
	return func(context.Context, string) (string, error) { return "", err }
}

// intercept makes one call without a network.
func intercept(ctx context.Context, i grpc.UnaryServerInterceptor) error {
	_, err := i(ctx, nil, callInfo, bareHandler)
	return err
}

// A Delay is slept out, or denied and given back if the caller cannot wait.
func TestDelay(t *testing.T) {
	for _, row := range []struct {
		name     string
		delay    time.Duration
		deadline time.Duration // 0: none
		cancel   bool          // while it waits
		code     codes.Code
		outcome  algo.Outcome
		result   telemetry.Result
	}{
		{"slept out", 20 * time.Millisecond, 0, false, codes.OK, algo.Succeeded, telemetry.Allowed},
		{"outlasts the deadline", time.Hour, time.Minute, false, codes.ResourceExhausted, algo.Canceled, telemetry.Denied},
		{"canceled", time.Hour, 0, true, codes.Canceled, algo.Canceled, telemetry.Canceled},
	} {
		t.Run(row.name, func(t *testing.T) {
			var seen telemetry.Event
			l := always(algo.Decision{Allowed: true, Delay: row.delay})
			i := grpcmw.UnaryServerInterceptor(l, rpckey.Global(), grpcmw.WithObserver(func(e telemetry.Event) { seen = e }))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if row.deadline > 0 {
				ctx, cancel = context.WithTimeout(ctx, row.deadline)
				defer cancel()
			}
			if row.cancel {
				time.AfterFunc(10*time.Millisecond, cancel)
			}
			started := time.Now()
			err := intercept(ctx, i)
			require.Equal(t, row.code, status.Code(err))
			require.Equal(t, []algo.Outcome{row.outcome}, l.released())
			require.Equal(t, row.result, seen.Result)
			require.Equal(t, int(row.code), seen.Status)
			if err == nil {
				require.GreaterOrEqual(t, time.Since(started), row.delay)
			}
		})
	}
}

// A call whose context has ended is not the limiter's fault.
func TestContextEndsInLimiter(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	i := grpcmw.UnaryServerInterceptor(failing(context.Canceled), rpckey.Global(), grpcmw.WithFailOpen())
	require.Equal(t, codes.Canceled, status.Code(intercept(ctx, i)))
}

func TestCost(t *testing.T) {
	l := &script{}
	cost := grpcmw.WithCost(func(_ context.Context, method string, msg any) int64 {
		require.Equal(t, callInfo.FullMethod, method)
		return int64(msg.(*testpb.SimpleRequest).ResponseSize)
	})
	c := client(t, &service{}, grpcmw.ServerOptions(l, rpckey.Global(), cost)...)
	for _, n := range []int32{7, 0, 1} {
		_, err := c.UnaryCall(t.Context(), &testpb.SimpleRequest{ResponseSize: n})
		require.NoError(t, err)
	}
	require.Equal(t, []int64{7, 0, 1}, l.costs)
}

func TestObserver(t *testing.T) {
	var seen []telemetry.Event
	bucket := algo.Must(algo.NewTokenBucket(algo.PerMinute(2)))
	i := grpcmw.UnaryServerInterceptor(bucket, named("alice"), grpcmw.WithObserver(func(e telemetry.Event) { seen = append(seen, e) }))
	for range 3 {
		intercept(t.Context(), i)
	}
	require.Len(t, seen, 3)
	for n, want := range []struct {
		result telemetry.Result
		code   codes.Code
		left   int64
	}{{telemetry.Allowed, codes.OK, 1}, {telemetry.Allowed, codes.OK, 0}, {telemetry.Denied, codes.ResourceExhausted, 0}} {
		e := seen[n]
		require.Equal(t, "2-per-minute", e.Policy)
		require.Equal(t, callInfo.FullMethod, e.Method)
		require.Equal(t, want.result, e.Result)
		require.Equal(t, int(want.code), e.Status)
		require.Equal(t, want.left, e.Decision.Remaining)
		require.EqualValues(t, 1, e.Cost)
		require.NotZero(t, e.KeyHash)
		require.Equal(t, seen[0].KeyHash, e.KeyHash)
		require.NoError(t, e.Err)
	}
	require.Equal(t, "allowed denied canceled failed-open failed-closed unknown", strings.Join([]string{
		telemetry.Allowed.String(), telemetry.Denied.String(), telemetry.Canceled.String(),
		telemetry.FailedOpen.String(), telemetry.FailedClosed.String(), noResult.String(),
	}, " "))
}
