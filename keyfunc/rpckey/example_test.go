package rpckey_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"net/url"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// from is the context of a call from an address.
func from(addr string) context.Context {
	return peer.NewContext(context.Background(), &peer.Peer{
		Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr)),
	})
}

func ExampleFromConfig() {
	key, err := rpckey.FromConfig(keyfunc.IPConfig{
		Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Header:  "Forwarded",
	})
	if err != nil {
		panic(err)
	}
	ctx := metadata.NewIncomingContext(from("10.0.0.1:4711"), metadata.Pairs("forwarded", "for=203.0.113.7"))
	fmt.Println(key(ctx, "/items.Items/Get"))
	// Output: 203.0.113.7 <nil>
}

func ExampleGlobal() {
	key, err := rpckey.Global()(context.Background(), "/items.Items/Get")
	fmt.Printf("%q %v\n", key, err)
	// Output: "" <nil>
}

func ExampleContext() {
	key := rpckey.Context(func(ctx context.Context) (string, bool) {
		name, ok := ctx.Value(tenant{}).(string)
		return name, ok
	})
	fmt.Println(key(context.WithValue(context.Background(), tenant{}, "acme"), "/items.Items/Get"))
	// Output: acme <nil>
}

func ExampleJoin() {
	key := rpckey.Join(rpckey.PeerIP(), rpckey.Service())
	fmt.Println(key(from("203.0.113.7:4711"), "/items.Items/Get"))
	// Output: ~join/11:203.0.113.7/11:items.Items <nil>
}

func ExamplePeerIP() {
	fmt.Println(rpckey.PeerIP()(from("[2001:db8:1:2::3]:4711"), "/items.Items/Get"))
	// Output: 2001:db8:1:2::/64 <nil>
}

func ExampleClientIP() {
	key := rpckey.ClientIP(netip.MustParsePrefix("10.0.0.0/8"))
	ctx := metadata.NewIncomingContext(from("10.0.0.1:4711"), metadata.Pairs("x-forwarded-for", "192.0.2.66, 203.0.113.7"))
	fmt.Println(key(ctx, "/items.Items/Get"))
	// Output: 203.0.113.7 <nil>
}

func ExampleFullMethod() {
	fmt.Println(rpckey.FullMethod()(context.Background(), "/items.Items/Get"))
	// Output: /items.Items/Get <nil>
}

func ExampleService() {
	fmt.Println(rpckey.Service()(context.Background(), "/items.Items/Get"))
	// Output: items.Items <nil>
}

func ExampleMetadata() {
	ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs("x-tenant", "acme"))
	fmt.Println(rpckey.Metadata("X-Tenant")(ctx, "/items.Items/Get"))
	// Output: acme <nil>
}

// The peer's address limits calls without a tenant.
func ExampleOr() {
	key := rpckey.Or(rpckey.Metadata("x-tenant"), rpckey.PeerIP())
	ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711}})
	fmt.Println(key(ctx, "/items.Items/Get"))
	// Output: 192.0.2.7 <nil>
}

func ExampleTLSIdentity() {
	ctx := peer.NewContext(context.Background(), &peer.Peer{AuthInfo: credentials.TLSInfo{State: service}})
	fmt.Println(rpckey.TLSIdentity()(ctx, "/items.Items/Get"))
	// Output: spiffe://example.org/billing <nil>
}

// tenant is the type of a context key.
type tenant struct{}

// service is the certificate of a client, as crypto/tls hands it over.
var service = tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{
	{URIs: []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/billing"}}},
}}}

// Calls from one network are not limited.
func ExampleWithin() {
	exempt, err := rpckey.Within(keyfunc.IPConfig{}, netip.MustParsePrefix("192.0.2.0/24"))
	fmt.Println(exempt(from("192.0.2.7:1"), "/a/b"), exempt(from("203.0.113.9:1"), "/a/b"), err) // in grpcmw.WithSkip(exempt)
	// Output: true false <nil>
}
