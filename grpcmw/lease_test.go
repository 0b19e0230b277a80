package grpcmw_test

import (
	"bytes"
	"context"
	"log"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

func TestLeaseFrom(t *testing.T) {
	bucket := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
	var got *algo.Lease
	handler := func(ctx context.Context, _ any) (any, error) {
		got = grpcmw.LeaseFrom(ctx)
		got.Settle(4)
		return nil, nil
	}
	i := grpcmw.UnaryServerInterceptor(bucket, rpckey.Global(), grpcmw.WithLeaseInContext())
	_, err := i(t.Context(), nil, callInfo, handler)
	require.NoError(t, err)
	require.True(t, got.Allowed)
	require.EqualValues(t, 9, got.Remaining)
	lease, err := bucket.Acquire(t.Context(), "~global", 0)
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
		got = grpcmw.LeaseFrom(ss.Context())
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
				grpcmw.MeterFrom(ctx, "tokens", 1).Close()
				return nil, nil
			})
			require.NoError(t, err)
		}
		require.Equal(t, 1-len(opts), strings.Count(out.String(), "code=grpcmw.meter_without_lease"), out.String())
	}
}

// Several limits: the meter is of the policy that is named, and nothing else is
// charged.
func TestMeterFrom(t *testing.T) {
	requests, tokens := perHour(10), perHour(3000)
	svc := &service{unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		m := grpcmw.MeterFrom(ctx, "tokens", 100)
		for range 20 {
			d, err := m.Reserve(ctx, 60)
			require.NoError(t, err)
			require.True(t, d.Allowed)
			m.Use(60)
		}
		m.Close()
		none := grpcmw.MeterFrom(ctx, "unknown", 100)
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
	require.Equal(t, int64(9), left(t, requests, "~global"))
	require.Equal(t, int64(1800), left(t, tokens, "~global"))
}
