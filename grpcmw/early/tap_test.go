package early_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/grpcmw/early"
	"github.com/sluice-go/sluice/internal/workshop/grpctest"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limiter is a limiter that is a function.
type limiter func(ctx context.Context, key string, n int64) (algo.Decision, error)

func (f limiter) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	d, err := f(ctx, key, n)
	return algo.NewLease(d, nil, algo.Handle{}), err
}

func always(d algo.Decision) algo.Limiter {
	return limiter(func(context.Context, string, int64) (algo.Decision, error) { return d, nil })
}

func failing(err error) algo.Limiter {
	return limiter(func(context.Context, string, int64) (algo.Decision, error) { return algo.Decision{}, err })
}

func slot() algo.Limiter { return algo.Must(adaptive.New(adaptive.Fixed(1))) }

func spent(t *testing.T, key string) *algo.RateLimiter {
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	require.True(t, l.Allow(key, 1))
	return l
}

var (
	overload = algo.Decision{Reason: algo.Overload, Limit: 1, RetryAfter: time.Second}
	never    = algo.Decision{Reason: algo.Never, Limit: 1, RetryAfter: algo.Forever}
)

// A tap beside the interceptors: calls are shed before they are attempted.
func TestTapSheds(t *testing.T) {
	bucket := algo.Must(algo.NewTokenBucket(algo.PerHour(2)))
	svc := new(grpctest.Service)
	attempts := 0
	opts := append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		attempts++
		return next(ctx, req)
	})}, grpcmw.ServerOptions(bucket, rpckey.PeerIP())...)
	opts = append(opts, grpc.InTapHandle(early.TapHandle(bucket, rpckey.PeerIP())))
	conn := grpctest.Dial(t, grpctest.Serve(t, svc, opts...))
	c := testpb.NewTestServiceClient(conn)
	for range 2 {
		_, err := c.UnaryCall(t.Context(), &testpb.SimpleRequest{})
		require.NoError(t, err)
	}
	var header, trailer metadata.MD
	_, err := c.UnaryCall(t.Context(), &testpb.SimpleRequest{}, grpc.Header(&header), grpc.Trailer(&trailer))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	details := status.Convert(err).Details()
	require.Equal(t, "2-per-hour", details[0].(*errdetails.ErrorInfo).Metadata["policy"])
	require.Equal(t, "address", details[1].(*errdetails.QuotaFailure).Violations[0].Subject)
	require.InDelta(t, 33*time.Minute, details[2].(*errdetails.RetryInfo).RetryDelay.AsDuration(), float64(4*time.Minute))
	require.Empty(t, trailer["grpc-retry-pushback-ms"])
	s, err := c.FullDuplexCall(t.Context())
	require.NoError(t, err)
	_, err = s.Recv()
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Equal(t, 2, attempts, "the interceptors saw calls that the tap had denied")
	_, err = healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
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
	busy := slot()
	lease, err := busy.Acquire(t.Context(), "", 1)
	require.NoError(t, err)
	defer lease.Release(algo.Canceled)
	patient := algo.Must(algo.NewTokenBucket(algo.PerHour(1), algo.MaxWait(2*time.Hour)))
	require.True(t, patient.Allow("", 1))
	for _, row := range []struct {
		name string
		l    algo.Limiter
		code codes.Code
	}{
		{"room", look(algo.Decision{Limit: 5, Remaining: 1}), codes.OK},
		{"spent", look(algo.Decision{Limit: 5, NextAfter: time.Second}), codes.ResourceExhausted},
		{"spent, shadowed", look(algo.Decision{Limit: 5, Source: algo.SourceTrial}), codes.OK},
		{"switched off", look(algo.Decision{Limit: 5, Source: algo.SourceOff}), codes.OK},
		{"says nothing", look(algo.Decision{}), codes.OK},
		{"spent, but it lets wait", patient, codes.OK},
		{"in flight, room", slot(), codes.OK},
		{"in flight, full", busy, codes.Unavailable},
		{"denies a look", always(overload), codes.Unavailable},
		{"never", always(never), codes.ResourceExhausted},
		{"fails", failing(errors.New("secret")), codes.OK},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.code, status.Code(tapped(t.Context(), early.TapHandle(row.l, rpckey.Global()), "/a.B/C")))
		})
	}
}

// A limit on trial denies no call, whatever remains of it; the limit beside it does.
func TestTapAndShadow(t *testing.T) {
	plenty := algo.Must(algo.NewTokenBucket(algo.PerSecond(1e9)))
	for name, row := range map[string]struct {
		l    algo.Limiter
		code codes.Code
	}{
		"enforced":             {spent(t, ""), codes.ResourceExhausted},
		"on trial":             {algo.Shadow(spent(t, "")), codes.OK},
		"on trial, switched":   {algo.NewSwitch(algo.Shadow(spent(t, ""))), codes.OK},
		"on trial beside room": {algo.All(algo.Shadow(spent(t, "")), plenty), codes.OK},
		"on trial beside none": {algo.All(algo.Shadow(plenty), spent(t, "")), codes.ResourceExhausted},
		"on trial and failing": {algo.Shadow(failing(errors.New("down"))), codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, row.code, status.Code(tapped(t.Context(), early.TapHandle(row.l, rpckey.Global()), "/a.B/C")))
		})
	}
}

// A look changes nothing and holds nothing.
func TestTapOnlyLooks(t *testing.T) {
	bucket, s := algo.Must(algo.NewTokenBucket(algo.PerHour(2))), algo.Must(adaptive.New(adaptive.Fixed(2)))
	for range 100 {
		require.NoError(t, tapped(t.Context(), early.TapHandle(bucket, rpckey.Global()), "/a.B/C"))
		require.NoError(t, tapped(t.Context(), early.TapHandle(s, rpckey.Global()), "/a.B/C"))
	}
	lease, _ := bucket.Acquire(t.Context(), "", 0)
	require.EqualValues(t, 2, lease.Remaining)
	lease, _ = s.Acquire(t.Context(), "", 2)
	require.True(t, lease.Allowed, "a slot is held")
	require.Zero(t, bucket.Stats().Live)
}

// A limiter that would wait finds that there is no time, and its values.
func TestTapNeverBlocks(t *testing.T) {
	type mark struct{}
	asked := false
	waiting := limiter(func(ctx context.Context, _ string, _ int64) (algo.Decision, error) {
		asked = true
		require.Equal(t, "value", ctx.Value(mark{}))
		deadline, ok := ctx.Deadline()
		require.True(t, ok)
		require.Negative(t, time.Until(deadline))
		<-ctx.Done()
		return algo.Decision{}, ctx.Err()
	})
	ctx := context.WithValue(t.Context(), mark{}, "value")
	require.NoError(t, tapped(ctx, early.TapHandle(waiting, rpckey.Global()), "/a.B/C"))
	require.True(t, asked)
}

// Methods that clients make up are no keys.
func TestTapKnowsTheMethods(t *testing.T) {
	asked := map[string]bool{}
	l := limiter(func(_ context.Context, key string, _ int64) (algo.Decision, error) {
		asked[key] = true
		return algo.Decision{Allowed: true, Limit: 1}, nil
	})
	calls := 0
	h := early.TapHandle(l, rpckey.FullMethod(), early.WithRegistered(func() map[string]grpc.ServiceInfo {
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
	require.Equal(t, map[string]bool{"/a.B/C": true, "/a.B/D": true}, asked)
}

// The interceptors decide about calls without a key, and about exempt ones.
func TestTapLeavesTheRest(t *testing.T) {
	noKey := func(context.Context, string) (string, error) { return "", keyfunc.ErrNoKey }
	require.NoError(t, tapped(t.Context(), early.TapHandle(always(never), noKey), "/a.B/C"))
	exempt := early.TapHandle(always(never), rpckey.Global(), early.WithExempt("/a.B/C", "/d.E/*"))
	for method, code := range map[string]codes.Code{
		"/a.B/C": codes.OK, "/a.B/D": codes.ResourceExhausted, "/d.E/F": codes.OK, "/d.Ex/F": codes.ResourceExhausted,
		healthpb.Health_Check_FullMethodName: codes.ResourceExhausted,
	} {
		require.Equal(t, code, status.Code(tapped(t.Context(), exempt, method)), method)
	}
}

// Mistakes are seen when a server is put together.
func TestWiring(t *testing.T) {
	for message, wire := range map[string]func(){
		"early: TapHandle: the limiter is nil":      func() { early.TapHandle(nil, rpckey.Global()) },
		"early: TapHandle: the key function is nil": func() { early.TapHandle(always(never), nil) },
		"early: TapHandle: WithRegistered: is nil":  func() { early.TapHandle(always(never), rpckey.Global(), early.WithRegistered(nil)) },
	} {
		require.PanicsWithValue(t, message, wire)
	}
}

// grpc-go keeps something of each call that a tap refuses until the deadline
// that the client has chosen; a far one must not be refused there.
func TestTapLeavesFarDeadlinesAlone(t *testing.T) {
	h := early.TapHandle(always(never), rpckey.Global())
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
}
