package grpcmw_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

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
