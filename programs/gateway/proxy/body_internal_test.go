package proxy

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOnlyGRPCHasNoBodyTimeout: a body of another content type is limited, whatever its beginning.
func TestOnlyGRPCHasNoBodyTimeout(t *testing.T) {
	for kind, want := range map[string]bool{
		"application/grpc": true, "Application/GRPC+json;q=1": true, "application/grpc ": true,
		"application/grpcfoo": false, "application/grpc-web": false, "application/json": false, "": false,
	} {
		r := &http.Request{ProtoMajor: 2, Header: http.Header{"Content-Type": {kind}}}
		require.Equal(t, want, isGRPC(r), kind)
		r.ProtoMajor = 1
		require.False(t, isGRPC(r), kind)
	}
}
