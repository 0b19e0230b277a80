package rpckey_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

func TestTLSIdentity(t *testing.T) {
	key := rpckey.TLSIdentity()
	with := func(state tls.ConnectionState) context.Context {
		return peer.NewContext(context.Background(), &peer.Peer{AuthInfo: credentials.TLSInfo{State: state}})
	}
	dns := &x509.Certificate{DNSNames: []string{"web.example.com"}}
	for want, state := range map[string]tls.ConnectionState{
		"spiffe://example.org/billing": service,
		"~dns:web.example.com":         {VerifiedChains: [][]*x509.Certificate{{dns}}},
	} {
		require.Equal(t, want, rpcKeyOf(t, key, with(state), "/s/m"))
		r := request("192.0.2.1:1")
		r.TLS = &state
		require.Equal(t, want, keyOf(t, keyfunc.ClientCert(), r))
	}
	for name, ctx := range map[string]context.Context{
		"not verified": with(tls.ConnectionState{PeerCertificates: []*x509.Certificate{dns}}),
		"no peer":      context.Background(),
		"no TLS":       call(tcp("192.0.2.1:1")),
		"nil peer":     peer.NewContext(context.Background(), nil),
	} {
		k, err := key(ctx, "/s/m")
		requireNoKey(t, k, err)
		require.NotNil(t, err, name)
	}
}
