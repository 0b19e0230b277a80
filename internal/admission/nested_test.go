package admission_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/httpmw"
)

// TestDeniedFurtherIn: a call that a limit further in denies has arrived, so outer limits keep
// what they charged; but its work was not done, so it is no failure, holds no slot and is
// refunded where refunds are asked for. It is alike over both protocols.
func TestDeniedFurtherIn(t *testing.T) {
	denials := map[string]algo.Decision{
		"overload": denies(algo.Overload, 1), "quota": denies(algo.Quota, 1), "banned": denies(algo.Banned, algo.Forever),
	}
	for why, d := range denials {
		for name, row := range map[string]struct {
			outer func() algo.Limiter
			left  int64 // of 9, after 3 calls
			opt   bool  // WithRefundIf
		}{
			"bucket":        {func() algo.Limiter { return algo.Must(algo.NewTokenBucket(algo.PerDay(9))) }, 6, false},
			"failures only": {func() algo.Limiter { return guard.FailuresOnly(algo.Must(algo.NewTokenBucket(algo.PerDay(9)))) }, 9, false},
			"slots":         {func() algo.Limiter { return algo.Must(adaptive.PerKey(9)) }, 9, false},
			"refunds":       {func() algo.Limiter { return algo.Must(algo.NewTokenBucket(algo.PerDay(9))) }, 9, true},
		} {
			outer, inner := row.outer(), says{d: d}
			key := func(*http.Request) (string, error) { return "k", nil }
			var opts []httpmw.Option
			if row.opt {
				opts = append(opts, httpmw.WithRefundIf(func(int) bool { return false }))
			}
			wrapped := func(next http.Handler) http.Handler { // a middleware in between
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					next.ServeHTTP(struct {
						http.ResponseWriter
						unwraps
					}{w, unwraps{w}}, r)
				})
			}
			h := httpmw.Limit(outer, key, opts...)(wrapped(httpmw.Limit(inner, key)(http.NotFoundHandler())))
			for range 3 {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
			}
			require.Equal(t, row.left, remaining(t, outer), "%s, %s, over HTTP", why, name)

			outer = row.outer()
			rpc := func(context.Context, string) (string, error) { return "k", nil }
			var rpcOpts []grpcmw.Option
			if row.opt {
				rpcOpts = append(rpcOpts, grpcmw.WithRefundIf(func(codes.Code) bool { return false }))
			}
			first, second := grpcmw.UnaryServerInterceptor(outer, rpc, rpcOpts...), grpcmw.UnaryServerInterceptor(inner, rpc)
			info := &grpc.UnaryServerInfo{FullMethod: "/s/m"}
			for range 3 {
				_, err := first(t.Context(), nil, info, func(ctx context.Context, req any) (any, error) {
					return second(ctx, req, info, func(context.Context, any) (any, error) { return nil, nil })
				})
				require.Error(t, err)
			}
			require.Equal(t, row.left, remaining(t, outer), "%s, %s, over gRPC", why, name)
		}
	}
}

type unwraps struct{ w http.ResponseWriter }

func (u unwraps) Unwrap() http.ResponseWriter { return u.w }

func remaining(t *testing.T, l algo.Limiter) int64 {
	d, err := algo.Peek(t.Context(), l, "k", 0)
	require.NoError(t, err)
	return d.Remaining
}
