package grpcmw_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// A tap beside the interceptors: calls are shed before they are attempted.
func TestTapSheds(t *testing.T) {
	bucket := algo.Must(algo.NewTokenBucket(algo.PerHour(2)))
	seen, svc := new(attempts), &service{duplex: echo}
	opts := append(seen.options(), grpcmw.ServerOptions(bucket, rpckey.PeerIP())...)
	opts = append(opts, grpc.InTapHandle(grpcmw.TapHandle(bucket, rpckey.PeerIP(), grpcmw.WithName("edge"))))
	conn := dial(t, serve(t, svc, opts...))
	c := testpb.NewTestServiceClient(conn)
	for range 2 {
		_, _, err := call(t.Context(), c)
		require.NoError(t, err)
	}
	for name, ask := range map[string]func(context.Context, testpb.TestServiceClient) (metadata.MD, metadata.MD, error){
		"unary": call, "stream": callStream,
	} {
		header, trailer, err := ask(t.Context(), c)
		require.Equal(t, codes.ResourceExhausted, status.Code(err), name)
		d := detailsOf(t, err)
		require.Equal(t, "edge", d.info.Metadata["policy"])
		require.Equal(t, "address", d.quota.Violations[0].Subject)
		require.InDelta(t, 33*time.Minute, d.retry.RetryDelay.AsDuration(), float64(4*time.Minute))
		requireNoHeader(t, header)
		require.Empty(t, trailer[pushback])
	}
	require.EqualValues(t, 2, seen.n.Load(), "the interceptors saw calls that the tap had denied")
	_, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
}

// With a retry policy, a client comes back to a tap after its own backoff: it
// has no trailer. (When the answer to the last attempt outruns its message,
// grpc-go reports UNKNOWN.)
func TestTapAndRetries(t *testing.T) {
	l := &script{answer: func(_ string, n int64) (algo.Decision, error) {
		return algo.Decision{Allowed: true, Limit: 5, NextAfter: time.Hour}, nil
	}}
	addr := serve(t, &service{}, grpc.InTapHandle(grpcmw.TapHandle(l, rpckey.Global())))
	_, _, err := call(t.Context(), testpb.NewTestServiceClient(dial(t, addr, grpc.WithDefaultServiceConfig(retrying))))
	require.Contains(t, []codes.Code{codes.ResourceExhausted, codes.Unknown}, status.Code(err), "%v", err)
	require.Equal(t, []int64{0, 0, 0, 0}, l.costs)
}

// tapped is a look at one call of the method.
func tapped(ctx context.Context, h tap.ServerInHandle, method string) error {
	got, err := h(ctx, &tap.Info{FullMethodName: method})
	if got != ctx {
		return errors.New("the context has changed")
	}
	return err
}

// The tap for each kind of decision.
func TestTapVerdicts(t *testing.T) {
	look := func(d algo.Decision) algo.Limiter {
		d.Allowed = true
		return always(d)
	}
	busy := func() algo.Limiter {
		s := &slots{limit: 1}
		s.Acquire(t.Context(), "", 1)
		return s
	}
	for _, row := range []struct {
		name string
		l    algo.Limiter
		opts []grpcmw.Option
		code codes.Code
	}{
		{"room", look(algo.Decision{Limit: 5, Remaining: 1}), nil, codes.OK},
		{"spent", look(algo.Decision{Limit: 5, NextAfter: time.Second}), nil, codes.ResourceExhausted},
		{"spent, shadowed", look(algo.Decision{Limit: 5, Source: algo.SourceTrial}), nil, codes.OK},
		{"switched off", look(algo.Decision{Limit: 5, Source: algo.SourceOff}), nil, codes.OK},
		{"says nothing", look(algo.Decision{}), nil, codes.OK},
		{"in flight, room", &slots{limit: 1}, nil, codes.OK},
		{"in flight, full", busy(), nil, codes.Unavailable},
		{"denies a look", always(overloadFor(time.Second)), nil, codes.Unavailable},
		{"never", always(never), nil, codes.ResourceExhausted},
		{"fails", failing(errors.New("secret")), nil, codes.OK},
		{"retry, little left", look(algo.Decision{Limit: 10, Remaining: 5}), []grpcmw.Option{grpcmw.WithRetryReserve(0.5)}, codes.Unavailable},
		{"retry, enough left", look(algo.Decision{Limit: 10, Remaining: 6}), []grpcmw.Option{grpcmw.WithRetryReserve(0.5)}, codes.OK},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("grpc-previous-rpc-attempts", "1"))
			err := tapped(ctx, grpcmw.TapHandle(row.l, rpckey.Global(), row.opts...), "/a.B/C")
			require.Equal(t, row.code, status.Code(err))
		})
	}
}

// A limit on trial denies no call, whatever remains of it; the limit beside it does.
func TestTapAndShadow(t *testing.T) {
	spent := func() algo.Limiter {
		l := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
		require.True(t, l.Allow("", 1))
		return l
	}
	for name, row := range map[string]struct {
		l    algo.Limiter
		code codes.Code
	}{
		"enforced":             {spent(), codes.ResourceExhausted},
		"on trial":             {algo.Shadow(spent()), codes.OK},
		"on trial, switched":   {algo.NewSwitch(algo.Shadow(spent())), codes.OK},
		"on trial beside room": {algo.All(algo.Shadow(spent()), plenty()), codes.OK},
		"on trial beside none": {algo.All(algo.Shadow(plenty()), spent()), codes.ResourceExhausted},
		"on trial and failing": {algo.Shadow(failing(errors.New("down"))), codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("grpc-previous-rpc-attempts", "1"))
			for _, opts := range [][]grpcmw.Option{nil, {grpcmw.WithRetryReserve(0.99)}} {
				err := tapped(ctx, grpcmw.TapHandle(row.l, rpckey.Global(), opts...), "/a.B/C")
				require.Equal(t, row.code, status.Code(err))
			}
		})
	}
	l := algo.All(algo.Shadow(plenty()), spent())
	err := intercept(t.Context(), grpcmw.UnaryServerInterceptor(l, rpckey.Global()))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
}

// A look changes nothing and holds nothing.
func TestTapOnlyLooks(t *testing.T) {
	bucket, s := algo.Must(algo.NewTokenBucket(algo.PerHour(2))), &slots{limit: 2}
	for range 100 {
		require.NoError(t, tapped(t.Context(), grpcmw.TapHandle(bucket, rpckey.Global()), "/a.B/C"))
		require.NoError(t, tapped(t.Context(), grpcmw.TapHandle(s, rpckey.Global()), "/a.B/C"))
	}
	lease, _ := bucket.Acquire(t.Context(), "", 0)
	require.EqualValues(t, 2, lease.Remaining)
	require.Zero(t, s.inFlight.Load())
	require.Zero(t, bucket.Len())
}

// A limiter that would wait finds that there is no time, and its values.
func TestTapNeverBlocks(t *testing.T) {
	type mark struct{}
	asked := false
	waiting := limiterFunc(func(ctx context.Context, _ string, _ int64) (algo.Lease, error) {
		asked = true
		require.Equal(t, "value", ctx.Value(mark{}))
		deadline, ok := ctx.Deadline()
		require.True(t, ok)
		require.Negative(t, time.Until(deadline))
		<-ctx.Done()
		return algo.Lease{}, ctx.Err()
	})
	ctx := context.WithValue(t.Context(), mark{}, "value")
	require.NoError(t, tapped(ctx, grpcmw.TapHandle(waiting, rpckey.Global()), "/a.B/C"))
	require.True(t, asked)
}

// Methods that clients make up are no keys.
func TestTapKnowsTheMethods(t *testing.T) {
	l := &script{answer: func(string, int64) (algo.Decision, error) {
		return algo.Decision{Allowed: true, Limit: 1}, nil
	}}
	calls := 0
	h := grpcmw.TapHandle(l, rpckey.FullMethod(), grpcmw.WithRegistered(func() map[string]grpc.ServiceInfo {
		calls++
		return map[string]grpc.ServiceInfo{"a.B": {Methods: []grpc.MethodInfo{{Name: "C"}, {Name: "D"}}}}
	}))
	require.Zero(t, calls)
	for method, code := range map[string]codes.Code{
		"/a.B/C": codes.ResourceExhausted, "/a.B/D": codes.ResourceExhausted,
		"/a.B/E": codes.OK, "/a.b/C": codes.OK, "/x": codes.OK, "": codes.OK, "/a.B/C/": codes.OK,
	} {
		require.Equal(t, code, status.Code(tapped(t.Context(), h, method)), method)
	}
	require.Equal(t, 1, calls)
	require.ElementsMatch(t, []string{"/a.B/C", "/a.B/D"}, l.asked())
}

func TestTapMissingKey(t *testing.T) {
	noKey := keyless(keyfunc.ErrNoKey)
	for _, row := range []struct {
		policy grpcmw.MissingKey
		key    keyfunc.RPC
		code   codes.Code
		asked  []string
	}{
		{grpcmw.Shared, noKey, codes.OK, []string{"~missing"}},
		{grpcmw.Skip, noKey, codes.OK, nil},
		{grpcmw.Deny, noKey, codes.Unauthenticated, nil},
		{grpcmw.Shared, keyless(errors.New("secret")), codes.OK, nil},
	} {
		l := &script{}
		h := grpcmw.TapHandle(l, row.key, grpcmw.WithMissingKey(row.policy))
		require.Equal(t, row.code, status.Code(tapped(t.Context(), h, "/a.B/C")))
		require.Equal(t, row.asked, l.asked())
	}
}

// grpc-go keeps something of each call that a tap refuses until the deadline
// that the client has chosen; a far one must not be refused there.
func TestTapLeavesFarDeadlinesAlone(t *testing.T) {
	l := always(never)
	h := grpcmw.TapHandle(l, rpckey.Global())
	for _, row := range []struct {
		left time.Duration // 0: no deadline
		code codes.Code
	}{
		{0, codes.ResourceExhausted},
		{5 * time.Second, codes.ResourceExhausted},
		{time.Minute, codes.OK},
		{99999999 * time.Second, codes.OK},
	} {
		ctx, cancel := t.Context(), func() {}
		if row.left > 0 {
			ctx, cancel = context.WithTimeout(ctx, row.left)
		}
		require.Equal(t, row.code, status.Code(tapped(ctx, h, "/a.B/C")), row.left)
		cancel()
	}
	require.Len(t, l.asked(), 2)
}
