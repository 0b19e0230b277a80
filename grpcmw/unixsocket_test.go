package grpcmw_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// Clients of a Unix socket are one client, also over ServeHTTP and however they
// name their end of it.
func TestS1_UnixSocketOverServeHTTP(t *testing.T) {
	t.Chdir(t.TempDir())
	l := &script{answer: func(string, int64) (algo.Decision, error) { return algo.Decision{Allowed: true}, nil }}
	srv := grpc.NewServer(grpcmw.ServerOptions(l, rpckey.PeerIP())...)
	testpb.RegisterTestServiceServer(srv, &service{})
	lis, err := net.Listen("unix", "server")
	require.NoError(t, err)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	front := &http.Server{Handler: srv, Protocols: protocols}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = front.Serve(lis)
	}()
	t.Cleanup(func() {
		_ = front.Close()
		<-done
		srv.Stop()
	})
	for _, name := range []string{"10.0.0.1:80", "203.0.113.7:1", "@", ""} {
		conn, err := grpc.NewClient("passthrough:///server", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
				var own *net.UnixAddr
				if name != "" {
					own = &net.UnixAddr{Name: name, Net: "unix"}
				}
				return net.DialUnix("unix", own, &net.UnixAddr{Name: "server", Net: "unix"})
			}))
		require.NoError(t, err)
		_, err = testpb.NewTestServiceClient(conn).UnaryCall(t.Context(), &testpb.SimpleRequest{})
		require.NoError(t, err, name)
		require.NoError(t, conn.Close())
		if name != "" {
			_ = os.Remove(name)
		}
	}
	require.Equal(t, []string{"~unix", "~unix", "~unix", "~unix"}, l.asked())
}
