package proxy_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDenialsOfCalls: a content type is one of gRPC with any codec, case and parameter, and no other
// that begins with the same letters.
func TestDenialsOfCalls(t *testing.T) {
	r := newRig(t, "routes: [{pattern: /, upstream: UPSTREAM, limits: [{name: a, key: global, limit: 1/h}]}]\n", ok)
	require.Equal(t, http.StatusOK, r.status("/"))
	for _, kind := range []string{"application/grpc", "APPLICATION/GRPC", "application/grpc+proto", "application/grpc; a=b", "application/grpc-web", "application/grpc-web-text+proto"} {
		denied := r.get("/", "Content-Type", kind)
		require.Equal(t, "8", denied.Header.Get("Grpc-Status"), kind)
	}
	require.Equal(t, "application/connect+proto", r.get("/", "Content-Type", "Application/Connect+proto").Header.Get("Content-Type"))
	require.Equal(t, "application/json", r.get("/", "Connect-Protocol-Version", "1").Header.Get("Content-Type"))
	for _, kind := range []string{"application/grpcfoo", "application/grpc-websocket", "application/json+grpc", ""} {
		denied := r.get("/", "Content-Type", kind)
		require.Equal(t, "application/problem+json", denied.Header.Get("Content-Type"), kind)
		require.Empty(t, denied.Header.Get("Grpc-Status"), kind)
	}
}
