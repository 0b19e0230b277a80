package grpcmw_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

func TestMissingKey(t *testing.T) {
	nobody := keyless(errors.Join(keyfunc.ErrNoKey, errors.New("secret")))
	broken := keyless(errors.New("secret"))
	for _, row := range []struct {
		name   string
		key    keyfunc.RPC
		opts   []grpcmw.Option
		code   codes.Code
		asked  []string
		result grpcmw.Result
	}{
		{"default", nobody, nil, codes.OK, []string{"~missing"}, grpcmw.Allowed},
		{"Shared", nobody, []grpcmw.Option{grpcmw.WithMissingKey(grpcmw.Shared)}, codes.OK, []string{"~missing"}, grpcmw.Allowed},
		{"Deny", nobody, []grpcmw.Option{grpcmw.WithMissingKey(grpcmw.Deny)}, codes.ResourceExhausted, nil, grpcmw.Denied},
		{"Skip", nobody, []grpcmw.Option{grpcmw.WithMissingKey(grpcmw.Skip)}, codes.OK, nil, noResult},
		{"fallback", nobody, []grpcmw.Option{grpcmw.WithMissingKey(grpcmw.FallbackTo(named("x")))}, codes.OK, []string{"x"}, grpcmw.Allowed},
		{"fallback without key", nobody, []grpcmw.Option{grpcmw.WithMissingKey(grpcmw.FallbackTo(nobody))}, codes.OK, []string{"~missing"}, grpcmw.Allowed},
		{"fallback fails", nobody, []grpcmw.Option{grpcmw.WithMissingKey(grpcmw.FallbackTo(broken))}, codes.Unavailable, nil, grpcmw.FailedClosed},
		{"another error", broken, nil, codes.Unavailable, nil, grpcmw.FailedClosed},
		{"another error, Skip", broken, []grpcmw.Option{grpcmw.WithMissingKey(grpcmw.Skip)}, codes.Unavailable, nil, grpcmw.FailedClosed},
		{"another error, FailOpen", broken, []grpcmw.Option{grpcmw.WithOnError(grpcmw.FailOpen)}, codes.OK, nil, grpcmw.FailedOpen},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, seen := &script{}, noResult
			observer := grpcmw.WithObserver(func(e grpcmw.Event) { seen = e.Result })
			opts := append([]grpcmw.Option{observer}, row.opts...)
			err := intercept(t.Context(), grpcmw.UnaryServerInterceptor(l, row.key, opts...))
			require.Equal(t, row.code, status.Code(err))
			require.Equal(t, row.asked, l.asked())
			require.Equal(t, row.result, seen)
			if err != nil {
				require.NotContains(t, err.Error(), "secret")
			}
		})
	}
}

const noResult = grpcmw.Result(99)

func TestLimiterErrors(t *testing.T) {
	secret := errors.New("dial tcp 10.0.0.1:6379: secret")
	for _, row := range []struct {
		name   string
		err    error
		cost   int64
		opts   []grpcmw.Option
		code   codes.Code
		result grpcmw.Result
		final  bool // the client is told not to try again
	}{
		{"default", secret, 1, nil, codes.Unavailable, grpcmw.FailedClosed, false},
		{"FailClosed", secret, 1, []grpcmw.Option{grpcmw.WithOnError(grpcmw.FailClosed)}, codes.Unavailable, grpcmw.FailedClosed, false},
		{"FailOpen", secret, 1, []grpcmw.Option{grpcmw.WithOnError(grpcmw.FailOpen)}, codes.OK, grpcmw.FailedOpen, false},
		{"negative cost", nil, -1, nil, codes.Unavailable, grpcmw.FailedClosed, true},
		{"negative cost, FailOpen", nil, -1 << 63, []grpcmw.Option{grpcmw.WithOnError(grpcmw.FailOpen)}, codes.Unavailable, grpcmw.FailedClosed, true},
		{"ErrWait, FailOpen", algo.ErrWait, 1, []grpcmw.Option{grpcmw.WithOnError(grpcmw.FailOpen)}, codes.Unavailable, grpcmw.FailedClosed, false},
		{"ErrCost, FailOpen", algo.ErrCost, 1, []grpcmw.Option{grpcmw.WithOnError(grpcmw.FailOpen)}, codes.Unavailable, grpcmw.FailedClosed, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			var l algo.Limiter = failing(row.err)
			if row.err == nil {
				l = &script{}
			}
			var seen grpcmw.Event
			opts := append([]grpcmw.Option{
				grpcmw.WithCost(func(context.Context, string, any) int64 { return row.cost }),
				grpcmw.WithObserver(func(e grpcmw.Event) { seen = e }),
			}, row.opts...)
			c := client(t, &service{}, grpcmw.ServerOptions(l, rpckey.Global(), opts...)...)
			_, trailer, err := call(t.Context(), c)
			require.Equal(t, row.code, status.Code(err))
			require.Equal(t, row.result, seen.Result)
			require.Error(t, seen.Err)
			require.Equal(t, row.cost, seen.Cost)
			if err == nil {
				return
			}
			require.NotContains(t, err.Error(), "secret")
			require.NotContains(t, err.Error(), "cost")
			require.Len(t, trailer[pushback], 1)
			require.Equal(t, row.final, trailer[pushback][0] == "-1")
		})
	}
}
