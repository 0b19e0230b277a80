package grpcmw_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

func TestExempt(t *testing.T) {
	for _, row := range []struct {
		method string
		opts   []grpcmw.Option
		free   bool
	}{
		{"/grpc.health.v1.Health/Watch", nil, false},
		{"/grpc.health.v1.Health/Watch", []grpcmw.Option{grpcmw.WithExempt("/grpc.health.v1.Health/Watch")}, true},
		{"/grpc.health.v1.Health/Made.Up", nil, false},
		{"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", nil, false},
		{"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", nil, false},
		{"/grpc.reflection.v1.ServerReflection/MadeUp", nil, false},
		{"/grpc.health.v1.Health/Check", []grpcmw.Option{grpcmw.WithExempt()}, false},
		{"/grpc.health.v1.Health/Check", []grpcmw.Option{grpcmw.WithExempt("/a.B/C")}, false},
		{"/a.B/C", []grpcmw.Option{grpcmw.WithExempt("/a.B/C")}, true},
		{"/a.B/CD", []grpcmw.Option{grpcmw.WithExempt("/a.B/C")}, false},
		{"/a.B/D", []grpcmw.Option{grpcmw.WithExempt("/a.B/C")}, false},
		{"/a.B/D", []grpcmw.Option{grpcmw.WithExempt("/a.B/*")}, true},
		{"/a.BC/D", []grpcmw.Option{grpcmw.WithExempt("/a.B/*")}, false},
		{"/grpc.health.v1.HealthX/Check", nil, false},
		{"/grpc.health.v1.Health", nil, false},
		{"", nil, false},
	} {
		t.Run(row.method, func(t *testing.T) {
			unary := grpcmw.UnaryServerInterceptor(always(never), rpckey.Global(), row.opts...)
			_, err := unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: row.method}, bareHandler)
			require.Equal(t, row.free, err == nil)
			stream := grpcmw.StreamServerInterceptor(always(never), rpckey.Global(), row.opts...)
			err = stream(nil, &noStream{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: row.method}, func(any, grpc.ServerStream) error { return nil })
			require.Equal(t, row.free, err == nil)
		})
	}
}

// The health check is free as a unary call only.
func TestHealthCheckIsExempt(t *testing.T) {
	const check = "/grpc.health.v1.Health/Check"
	for _, opts := range [][]grpcmw.Option{nil, {grpcmw.WithObserver(func(telemetry.Event) {})}} {
		unary := grpcmw.UnaryServerInterceptor(always(never), rpckey.Global(), opts...)
		_, err := unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: check}, bareHandler)
		require.NoError(t, err)
		stream := grpcmw.StreamServerInterceptor(always(never), rpckey.Global(), opts...)
		err = stream(nil, &noStream{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: check}, func(any, grpc.ServerStream) error { return nil })
		require.Error(t, err)
	}
}

// noStream is a stream without a transport.
type noStream struct {
	grpc.ServerStream
	ctx context.Context
	md  metadata.MD
}

func (s *noStream) Context() context.Context  { return s.ctx }
func (s *noStream) SetTrailer(md metadata.MD) { s.md = metadata.Join(s.md, md) }

func TestHealthAnswersWhileLimited(t *testing.T) {
	conn := dial(t, serve(t, &service{}, grpcmw.ServerOptions(always(never), rpckey.PeerIP())...))
	_, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	_, _, err = call(t.Context(), testpb.NewTestServiceClient(conn))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
}
