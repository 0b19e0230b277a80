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

	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

func TestExempt(t *testing.T) {
	for _, row := range []struct {
		method string
		opts   []grpcmw.Option
		free   bool
	}{
		{"/grpc.health.v1.Health/Check", nil, true},
		{"/grpc.health.v1.Health/Watch", nil, true},
		{"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", nil, true},
		{"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", nil, true},
		{"/grpc.health.v1.Health/Check", []grpcmw.Option{grpcmw.WithExempt("/a.B/C")}, true},
		{"/grpc.health.v1.Health/Check", []grpcmw.Option{grpcmw.WithoutDefaultExempt()}, false},
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
