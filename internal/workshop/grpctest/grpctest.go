// Package grpctest has a service, its server and its clients for tests.
package grpctest

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
)

// Service answers as its functions say, and counts. Without a function it answers an empty
// message, or sends each message back.
type Service struct {
	testpb.UnimplementedTestServiceServer
	Unary  func(ctx context.Context, in *testpb.SimpleRequest) (*testpb.SimpleResponse, error)
	Duplex func(ss testpb.TestService_FullDuplexCallServer) error
	Begun  atomic.Int64 // calls
}

// UnaryCall implements the service.
func (s *Service) UnaryCall(ctx context.Context, in *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	s.Begun.Add(1)
	if s.Unary == nil {
		return &testpb.SimpleResponse{}, nil
	}
	return s.Unary(ctx, in)
}

// FullDuplexCall implements the service.
func (s *Service) FullDuplexCall(ss testpb.TestService_FullDuplexCallServer) error {
	s.Begun.Add(1)
	if s.Duplex != nil {
		return s.Duplex(ss)
	}
	for {
		if _, err := ss.Recv(); err != nil {
			return nil
		}
		if err := ss.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

// Serve runs a server with svc and the health service until the test ends, and returns its
// address.
func Serve(t testing.TB, svc *Service, opts ...grpc.ServerOption) string {
	t.Helper()
	srv := grpc.NewServer(append(opts, grpc.WaitForHandlers(true))...)
	testpb.RegisterTestServiceServer(srv, svc)
	healthpb.RegisterHealthServer(srv, health.NewServer())
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(lis)
	}()
	t.Cleanup(func() {
		srv.Stop()
		<-done
	})
	return lis.Addr().String()
}

// Dial connects to addr until the test ends.
func Dial(t testing.TB, addr string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
