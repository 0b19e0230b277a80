package grpcmw_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// callBoth makes a unary call and a stream, and returns the errors and trailers.
func callBoth(t *testing.T, c testpb.TestServiceClient) (errs [2]error, trailers [2]metadata.MD) {
	t.Helper()
	_, errs[0] = c.UnaryCall(t.Context(), new(testpb.SimpleRequest), grpc.Trailer(&trailers[0]))
	stream, err := c.FullDuplexCall(t.Context())
	require.NoError(t, err)
	_, errs[1] = stream.Recv()
	trailers[1] = stream.Trailer()
	return errs, trailers
}

// A denial that a handler returns equals the interceptor's: code, text, details and one
// pushback, also within other limits.
func TestDenialErrorIsThatOfTheInterceptor(t *testing.T) {
	banned := quotaFor(time.Second)
	banned.Reason = algo.Banned
	for name, l := range map[string]algo.Limiter{
		"quota": always(quotaFor(time.Second)), "overload": always(overloadFor(time.Second)), "never": always(never),
		"banned": always(banned), "failing": failing(errors.New("away")),
	} {
		for _, k := range []string{"alice", ""} {
			opts := []grpcmw.Option{grpcmw.WithName("exports")}
			key := func(context.Context, string) (string, error) { return k, nil }
			wantErrs, wantTrailers := callBoth(t, client(t, &service{}, grpcmw.ServerOptions(l, key, opts...)...))
			deny := func(ctx context.Context) error {
				lease, err := l.Acquire(ctx, k, 1)
				require.Equal(t, name == "failing", err != nil)
				return grpcmw.DenialError(ctx, l, k, lease.Decision, opts...)
			}
			svc := &service{
				unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
					return nil, deny(ctx)
				},
				duplex: func(s testpb.TestService_FullDuplexCallServer) error { return deny(s.Context()) },
			}
			outer := perHour(10)
			for _, within := range [][]grpc.ServerOption{nil, grpcmw.ServerOptions(outer, rpckey.Global())} {
				errs, trailers := callBoth(t, client(t, svc, within...))
				for i := range errs {
					want, got := status.Convert(wantErrs[i]), status.Convert(errs[i])
					require.Equal(t, want.Code(), got.Code(), name)
					require.Equal(t, want.Message(), got.Message(), name)
					a, b := detailsOf(t, wantErrs[i]), detailsOf(t, errs[i])
					require.Equal(t, a.info.String(), b.info.String(), name)
					require.Equal(t, a.quota.String(), b.quota.String(), name)
					require.Equal(t, a.retry == nil, b.retry == nil, name)
					require.Len(t, wantTrailers[i][pushback], 1, name)
					require.Len(t, trailers[i][pushback], 1, name)
				}
			}
			require.Equal(t, int64(8), left(t, outer, ""), "they have arrived")
		}
	}
}

// An admission that a handler reports has the trailers of one before it, if they are asked for, also
// within other limits.
func TestDenialErrorOfAnAdmission(t *testing.T) {
	key := func(context.Context, string) (string, error) { return "alice", nil }
	admits := func(report func(context.Context) error) *service {
		return &service{
			unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				return new(testpb.SimpleResponse), report(ctx)
			},
			duplex: func(s testpb.TestService_FullDuplexCallServer) error { return report(s.Context()) },
		}
	}
	outer := func() []grpc.ServerOption {
		return grpcmw.ServerOptions(perHour(50), rpckey.Global(), grpcmw.WithRateTrailers())
	}
	for _, opts := range [][]grpcmw.Option{{grpcmw.WithName("exports")}, {grpcmw.WithName("exports"), grpcmw.WithRateTrailers()}} {
		limit := perHour(10)
		svc := admits(func(ctx context.Context) error {
			lease, err := limit.Acquire(ctx, "alice", 1)
			require.NoError(t, err)
			return grpcmw.DenialError(ctx, limit, "alice", lease.Decision, opts...)
		})
		idle := admits(func(context.Context) error { return nil })
		_, want := callBoth(t, client(t, idle, grpcmw.ServerOptions(perHour(10), key, opts...)...))
		_, around := callBoth(t, client(t, idle, outer()...))
		_, alone := callBoth(t, client(t, svc))
		limit.Reset("alice")
		_, within := callBoth(t, client(t, svc, outer()...))
		for i := range want {
			for _, name := range []string{"ratelimit", "ratelimit-policy"} {
				require.Len(t, want[i][name], len(opts)-1)
				require.Equal(t, want[i][name], alone[i][name])
				require.ElementsMatch(t, append(around[i][name], want[i][name]...), within[i][name])
			}
		}
	}
}
