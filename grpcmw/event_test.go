package grpcmw_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/tap"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// What the event says was sent, is what the client of a real server receives.
func TestEventTellsWhatIsSent(t *testing.T) {
	quota := algo.Decision{Reason: algo.Quota, Limit: 1, RetryAfter: 10 * time.Second}
	for _, row := range []struct {
		name string
		l    algo.Limiter
		opts []grpcmw.Option
	}{
		{"admitted", always(algo.Decision{Allowed: true, Limit: 3, Remaining: 2}), nil},
		{"admitted, with trailers", algo.Must(algo.NewTokenBucket(algo.PerMinute(20))), []grpcmw.Option{grpcmw.WithRateTrailers()}},
		{"quota", always(quota), nil},
		{"never", always(never), nil},
		{"overload", always(algo.Decision{Reason: algo.Overload, Limit: 1}), nil},
		{"failed", failing(context.DeadlineExceeded), nil},
		{"on trial", algo.Shadow(always(quota)), []grpcmw.Option{grpcmw.WithRateTrailers()}},
	} {
		for kind, ask := range calls {
			told := make(chan grpcmw.Event, 1)
			opts := append(slices.Clone(row.opts), grpcmw.WithName("p"), grpcmw.WithObserver(func(e grpcmw.Event) { told <- e }))
			c := client(t, &service{duplex: echo}, grpcmw.ServerOptions(row.l, rpckey.Global(), opts...)...)
			_, trailer, err := ask(t.Context(), c)
			e, name := <-told, row.name+", "+kind
			require.Equal(t, first(trailer["ratelimit-policy"]), e.Sent.Policy, name)
			require.Equal(t, first(trailer["ratelimit"]), e.Sent.Limit, name)
			pushback, _ := strconv.Atoi(first(trailer["grpc-retry-pushback-ms"]))
			require.EqualValues(t, pushback, e.Sent.Pushback, name)
			require.Equal(t, detailsOf(t, err).retry.GetRetryDelay().AsDuration(), e.Sent.RetryAfter, name)
			require.Equal(t, telemetry.GRPC, e.Transport)
			require.Equal(t, row.name == "on trial", e.Shadowed())
			require.Equal(t, row.name == "quota", e.Sent.RetryAfter >= quota.RetryAfter, name)
			require.Equal(t, row.name == "admitted, with trailers", e.Sent.Limit != "", name)
		}
	}
}

// calls are the two kinds of call.
var calls = map[string]func(context.Context, testpb.TestServiceClient) (metadata.MD, metadata.MD, error){"unary": call, "stream": callStream}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// A tap handle has no trailers, a client answers nobody, and the messages of a
// stream have no trailers of their own.
func TestEventWhereLessIsSent(t *testing.T) {
	var e grpcmw.Event
	observe := grpcmw.WithObserver(func(ev grpcmw.Event) { e = ev })
	denying := always(algo.Decision{Reason: algo.Overload, Limit: 1, RetryAfter: time.Second})
	_, err := grpcmw.TapHandle(denying, rpckey.Global(), observe)(t.Context(), &tap.Info{FullMethodName: "/a/B", Header: metadata.MD{}})
	require.Error(t, err)
	require.Zero(t, e.Sent.Pushback)
	require.GreaterOrEqual(t, e.Sent.RetryAfter, time.Second)
	require.False(t, e.Client)

	call := grpcmw.UnaryClientInterceptor(denying, rpckey.Global(), observe)
	err = call(t.Context(), "/a/B", nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil })
	require.Error(t, err)
	require.Equal(t, telemetry.Sent{}, e.Sent)
	require.True(t, e.Client)
	require.Equal(t, int(codes.Unavailable), e.Status)

	stream := grpcmw.StreamServerInterceptor(plenty(), rpckey.Global(), observe,
		grpcmw.WithStreamMode(grpcmw.PerSend), grpcmw.WithRateTrailers())
	require.NoError(t, run(t.Context(), stream, func(ss grpc.ServerStream) error { return ss.SendMsg(nil) }))
	require.Equal(t, grpcmw.Allowed, e.Result)
	require.Equal(t, telemetry.Sent{}, e.Sent)
}

// The wait is that of a Delay on the server, and that of the whole patience on
// a client.
func TestEventTellsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []grpcmw.Event
		observe := grpcmw.WithObserver(func(e grpcmw.Event) { seen = append(seen, e) })
		start := time.Now()
		pacer := algo.Must(algo.NewPacer(algo.Every(10*time.Second), algo.MaxWait(time.Minute)))
		server := grpcmw.UnaryServerInterceptor(pacer, rpckey.Global(), observe)
		require.NoError(t, intercept(t.Context(), server))
		require.NoError(t, intercept(t.Context(), server))
		bucket := algo.Must(algo.NewTokenBucket(algo.Every(7 * time.Second)))
		paced := grpcmw.UnaryClientInterceptor(bucket, rpckey.Global(), observe)
		for range 2 {
			require.NoError(t, paced(t.Context(), "/a/B", nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }))
		}
		var waits []time.Duration
		for _, e := range seen {
			waits = append(waits, e.Waited)
		}
		require.Equal(t, []time.Duration{0, 10 * time.Second, 0, 7 * time.Second}, waits)
		require.Equal(t, start.Add(17*time.Second), seen[3].At)
	})
}

// BenchmarkObserver is what an observer that does nothing costs.
func BenchmarkObserver(b *testing.B) {
	ctx := callContext()
	spent := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	spent.Allow("192.0.2.7", 1)
	observe := grpcmw.WithObserver(func(grpcmw.Event) {})
	for _, row := range []struct {
		name      string
		intercept grpc.UnaryServerInterceptor
	}{
		{"admitted/unset", grpcmw.UnaryServerInterceptor(plenty(), rpckey.PeerIP())},
		{"admitted/set", grpcmw.UnaryServerInterceptor(plenty(), rpckey.PeerIP(), observe)},
		{"denied/unset", grpcmw.UnaryServerInterceptor(spent, rpckey.PeerIP())},
		{"denied/set", grpcmw.UnaryServerInterceptor(spent, rpckey.PeerIP(), observe)},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = row.intercept(ctx, nil, callInfo, bareHandler)
			}
		})
	}
}

// An observer that panics leaves no slot of a client behind either.
func TestPanickingObserverOfAClient(t *testing.T) {
	s := &slots{limit: 64}
	boom := grpcmw.WithObserver(func(grpcmw.Event) { panic("observer") })
	unary := grpcmw.UnaryClientInterceptor(s, rpckey.Global(), boom)
	require.PanicsWithValue(t, "observer", func() { unary(t.Context(), "/a/B", nil, nil, nil, nil) })
	stream := grpcmw.StreamClientInterceptor(s, rpckey.Global(), boom)
	require.PanicsWithValue(t, "observer", func() { stream(t.Context(), &grpc.StreamDesc{}, nil, "/a/B", nil) })
	s.requireIdle(t)
}
