package grpcmw_test

import (
	"bytes"
	"context"
	"io"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

func TestLeaseFrom(t *testing.T) {
	bucket := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
	var got *algo.Lease
	handler := func(ctx context.Context, _ any) (any, error) {
		got = algo.LeaseFrom(ctx)
		got.Settle(4)
		return nil, nil
	}
	i := grpcmw.UnaryServerInterceptor(bucket, rpckey.Global(), grpcmw.WithLeaseInContext())
	_, err := i(t.Context(), nil, callInfo, handler)
	require.NoError(t, err)
	require.True(t, got.Allowed)
	require.EqualValues(t, 9, got.Remaining)
	lease, err := bucket.Acquire(t.Context(), "", 0)
	require.NoError(t, err)
	require.EqualValues(t, 6, lease.Remaining)

	i = grpcmw.UnaryServerInterceptor(bucket, rpckey.Global())
	_, err = i(t.Context(), nil, callInfo, handler)
	require.NoError(t, err)
	require.Zero(t, *got)
}

func TestLeaseFromOnStreams(t *testing.T) {
	var got *algo.Lease
	i := grpcmw.StreamServerInterceptor(plenty(), rpckey.Global(), grpcmw.WithLeaseInContext())
	err := i(nil, &noStream{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: "/a.B/C"}, func(_ any, ss grpc.ServerStream) error {
		got = algo.LeaseFrom(ss.Context())
		return nil
	})
	require.NoError(t, err)
	require.True(t, got.Allowed)
}

// A call that is not charged by mistake is logged once.
func TestMeterFromWithoutALease(t *testing.T) {
	var out bytes.Buffer
	defer log.SetOutput(log.Writer())
	log.SetOutput(&out)
	for _, opts := range [][]grpcmw.Option{nil, {grpcmw.WithLeaseInContext()}} {
		grpcmw.ResetWarnings()
		out.Reset()
		i := grpcmw.UnaryServerInterceptor(perHour(10), rpckey.Global(), opts...)
		for range 3 {
			_, err := i(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/s/m"}, func(ctx context.Context, _ any) (any, error) {
				meter.From(ctx, "tokens", 1).Close()
				return nil, nil
			})
			require.NoError(t, err)
		}
		require.Equal(t, 1-len(opts), strings.Count(out.String(), "code=algo.meter_without_lease"), out.String())
	}
}

// A name that no policy around a call has is logged once; a call that lacks a policy on
// purpose is not logged.
func TestUnknownPolicy(t *testing.T) {
	kept := grpcmw.WithLeaseInContext()
	skip := grpcmw.WithSkip(func(context.Context, string) bool { return true })
	one := func(name string, opts ...grpcmw.Option) *grpcmw.Plans {
		return grpcmw.NewPlans(rpckey.Metadata("plan"), map[string][]grpcmw.Policy{
			"":    {{Name: "requests", Limiter: perHour(100), Key: rpckey.Global()}},
			"pro": {{Name: name, Limiter: perHour(100), Key: rpckey.Global()}},
		}, opts...)
	}
	for name, row := range map[string]struct {
		plans []*grpcmw.Plans
		logs  int
	}{
		"a typo":                 {[]*grpcmw.Plans{one("token", kept)}, 1},
		"of two interceptors":    {[]*grpcmw.Plans{one("a", kept), one("b", kept)}, 1},
		"of another plan":        {[]*grpcmw.Plans{one("tokens", kept)}, 0},
		"skipped":                {[]*grpcmw.Plans{one("tokens", kept, skip)}, 0},
		"skipped within another": {[]*grpcmw.Plans{one("a", kept), one("tokens", kept, skip)}, 0},
		"nothing is known":       {nil, 0},
		"without the option":     {[]*grpcmw.Plans{one("tokens")}, 1},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", stream"}[stream], func(t *testing.T) {
				var out bytes.Buffer
				log.SetOutput(&out)
				defer log.SetOutput(os.Stderr)
				grpcmw.ResetWarnings()
				svc := &service{unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
					algo.LeaseFrom(ctx, "tokens").Settle(3)
					return new(testpb.SimpleResponse), nil
				}, duplex: func(s testpb.TestService_FullDuplexCallServer) error {
					algo.LeaseFrom(s.Context(), "tokens").Settle(3)
					return nil
				}}
				var opts []grpc.ServerOption
				for _, p := range row.plans {
					opts = append(opts, p.ServerOptions()...)
				}
				client := client(t, svc, opts...)
				for range 2 {
					if stream {
						s, err := client.FullDuplexCall(t.Context())
						require.NoError(t, err)
						_, err = s.Recv()
						require.ErrorIs(t, err, io.EOF)
						continue
					}
					_, err := client.UnaryCall(t.Context(), new(testpb.SimpleRequest))
					require.NoError(t, err)
				}
				log.SetOutput(os.Stderr) // after this nothing writes to out
				require.Equal(t, row.logs, strings.Count(out.String(), `code=algo.unknown_policy policy=tokens`), out.String())
			})
		}
	}
}

// Several limits: the meter is of the policy that is named, and nothing else is
// charged.
func TestMeterFrom(t *testing.T) {
	requests, tokens := perHour(10), perHour(3000)
	svc := &service{unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		m := meter.From(ctx, "tokens", 100)
		for range 20 {
			d, err := m.Reserve(ctx, 60)
			require.NoError(t, err)
			require.True(t, d.Allowed)
			m.Use(60)
		}
		m.Close()
		none := meter.From(ctx, "unknown", 100)
		none.Use(500)
		none.Close()
		return &testpb.SimpleResponse{}, nil
	}}
	c := client(t, svc, grpcmw.Limits([]grpcmw.Policy{
		{Name: "requests", Limiter: requests, Key: rpckey.Global()},
		{Name: "tokens", Limiter: tokens, Key: rpckey.Global(), Cost: func(context.Context, string, any) int64 { return 500 }},
	}, grpcmw.WithLeaseInContext())...)
	_, err := unaryCall(c)
	require.NoError(t, err)
	require.Equal(t, int64(9), left(t, requests, ""))
	require.Equal(t, int64(1800), left(t, tokens, ""))
}
