package rpckey

import (
	"context"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/sluice-go/sluice/internal/keytext"
	"github.com/sluice-go/sluice/keyfunc"
)

var errNoCertificate = noKey("no verified client certificate with a usable name")

// TLSIdentity is [keyfunc.ClientCert] for gRPC: it keys calls by the identity in the
// verified client certificate of the connection. Keys and errors are the same.
func TLSIdentity() keyfunc.RPC {
	return func(ctx context.Context, _ string) (string, error) {
		if p, ok := peer.FromContext(ctx); ok && p != nil {
			if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
				if key, ok := keytext.Certificate(&info.State); ok {
					return key, nil
				}
			}
		}
		return "", errNoCertificate
	}
}
