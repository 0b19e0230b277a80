package rpckey

import (
	"context"
	"net/netip"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/internal/clientip"
)

var errNoPeer = noKey("the connection has no address")

// PeerIP keys calls by the address of the connecting peer, and ignores metadata.
// Use it for a server that clients reach directly; behind a proxy, use
// [ClientIP]. Keys and errors are those of [keyfunc.ClientIP].
func PeerIP() keyfunc.RPC {
	rules, err := clientip.New(clientip.Config{})
	if err != nil {
		panic(err.Error())
	}
	return func(ctx context.Context, _ string) (string, error) {
		a, ok := callPeer(ctx)
		if !ok {
			return "", errNoPeer
		}
		return rules.Key(a), nil
	}
}

// ClientIP is [keyfunc.ClientIP] for gRPC: it keys calls by the address of the
// client, of the connection or, if its peer is one of the trusted proxies, from
// the metadata key x-forwarded-for. It panics as [keyfunc.ClientIP] does. For another header, counted hops or Unix sockets
// use [FromConfig].
func ClientIP(trusted ...netip.Prefix) keyfunc.RPC {
	key, err := FromConfig(keyfunc.IPConfig{Trusted: trusted})
	if err != nil {
		panic(err.Error())
	}
	return key
}

// FromConfig makes the key function of a [keyfunc.IPConfig] for gRPC. It reads
// the metadata key that is Header in lower case. For the same client the keys
// and errors are the same as of [keyfunc.IPConfig.HTTP].
func FromConfig(c keyfunc.IPConfig) (keyfunc.RPC, error) {
	rules, err := clientip.New(clientip.Config(c))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, _ string) (string, error) {
		a, ok := callPeer(ctx)
		if !ok {
			return "", errNoPeer
		}
		return rules.Find(a, func(_, name string) []string { return metadata.ValueFromIncomingContext(ctx, name) }), nil
	}, nil
}

// Within is [keyfunc.IPConfig.Within] for gRPC: it makes a function for grpcmw.WithSkip that exempts
// the clients of networks.
func Within(c keyfunc.IPConfig, networks ...netip.Prefix) (func(ctx context.Context, fullMethod string) bool, error) {
	within, err := clientip.Within(clientip.Config(c), networks)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, _ string) bool {
		peer, ok := callPeer(ctx)
		return ok && within.Have(peer, func(_, name string) []string { return metadata.ValueFromIncomingContext(ctx, name) })
	}, nil
}

// callPeer returns the other end of the connection of a call.
//
// It recognizes a Unix socket by the address of the listener: grpc-go's ServeHTTP
// has the address of the peer as text, and a client may bind its own end to a file
// named like an address, "10.0.0.1:80".
func callPeer(ctx context.Context) (clientip.Address, bool) {
	p, ok := peer.FromContext(ctx)
	if !ok || p == nil {
		return clientip.Address{}, false
	}
	if clientip.IsUnix(p.LocalAddr) {
		return clientip.Unix, true
	}
	return clientip.FromNet(p.Addr)
}
