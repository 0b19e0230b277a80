package main

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// Clients that keep a connection or a stream open do not hold up the end of the service:
// one that has said nothing is waited for as long as the drain allows, one that watches its
// health not at all.
func TestStop(t *testing.T) {
	const domains = "domains: [{name: d, descriptors: [{key: a, limit: 1/s}]}]\n"
	ends := func(t *testing.T, r *running, within time.Duration) {
		t.Helper()
		ended := make(chan struct{})
		go func() { defer close(ended); r.end() }()
		select {
		case <-ended:
		case <-time.After(within):
			require.Fail(t, "the service does not end", "%s", r.log)
		}
	}
	t.Run("silent", func(t *testing.T) {
		r := run(t, map[string]string{"rls.yaml": "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntimeouts: {unready: 0s, drain: 200ms}\n" + domains})
		conn, err := net.Dial("tcp", r.front)
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte("PRI"))
		require.NoError(t, err)
		time.Sleep(50 * time.Millisecond)
		ends(t, r, 10*time.Second)
	})
	t.Run("watching", func(t *testing.T) {
		r := run(t, map[string]string{"rls.yaml": "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntimeouts: {unready: 0s, drain: 1m}\n" + domains})
		conn, err := grpc.NewClient(r.front, grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		defer conn.Close()
		watch, err := grpc_health_v1.NewHealthClient(conn).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		said, err := watch.Recv()
		require.NoError(t, err)
		require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, said.Status)
		ends(t, r, 20*time.Second)
		for err == nil {
			_, err = watch.Recv()
		}
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.NotContains(t, r.log.String(), "level=WARN")
	})
}
