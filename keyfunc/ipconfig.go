package keyfunc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// IPConfig says how to find the address of a client. The zero value is
// [ClientIP] with nothing trusted: the connecting peer is the client.
type IPConfig struct {
	// Trusted are the addresses of your own proxies, and of nobody else.
	// Host bits are ignored: 10.1.2.3/8 is 10.0.0.0/8. Prefixes that hold
	// all of IPv4 or IPv6, alone or together, are an error; see TrustAll.
	Trusted []netip.Prefix

	// Header is the one header read, when the peer is trusted. The default
	// is X-Forwarded-For. "Forwarded" is read by the grammar of RFC 7239.
	// X-Forwarded-For may have ports; every other header has addresses
	// only, separated by commas if there are several.
	Header string

	// Hops, if above 0, is the number of proxies between the client and
	// this server, 1 to 64: the client is then the Hops-th address from the
	// right, whatever it is, and a shorter chain is malformed. The peer
	// must still be trusted by one of the Trust fields. The default, 0,
	// finds the client by Trusted.
	Hops int

	// IPv6Bits is the length of the prefix by which IPv6 clients are told
	// apart, 32 to 128. The default, 0, is 64: one subscriber has at least
	// a /64 and can use a new address in it for each request. IPv4
	// addresses are never masked.
	IPv6Bits int

	// TrustUnix believes the header on connections through a Unix socket.
	// By default these all have the key "local".
	TrustUnix bool

	// TrustAll believes every peer with an address, and every hop. Without
	// Hops, any client can choose its key. It does not include Unix
	// sockets, and cannot be used together with Trusted.
	TrustAll bool
}

// HTTP makes the key function for net/http. It fails, naming the fields, on
// values out of range and on fields that contradict each other.
func (c IPConfig) HTTP() (HTTP, error) {
	rules, err := c.rules()
	if err != nil {
		return nil, err
	}
	return rules.fromRequest, nil
}

// RPC makes the key function for gRPC, which reads the metadata key that is
// Header in lower case. For the same client the keys are those of
// [IPConfig.HTTP].
func (c IPConfig) RPC() (RPC, error) {
	rules, err := c.rules()
	if err != nil {
		return nil, err
	}
	return rules.fromCall, nil
}

// rules checks the configuration.
func (c IPConfig) rules() (*ipRules, error) {
	header := c.Header
	if header == "" {
		header = headerXForwardedFor
	}
	if problem := headerProblem(header); problem != "" {
		return nil, fmt.Errorf("keyfunc: IPConfig.Header %q %s", header, problem)
	}
	bits := c.IPv6Bits
	if bits == 0 {
		bits = 64
	}
	if bits < 32 || bits > 128 {
		return nil, fmt.Errorf("keyfunc: IPConfig.IPv6Bits is %d: want 32 to 128, or 0 for 64", c.IPv6Bits)
	}
	if c.Hops < 0 || c.Hops > maxHops {
		return nil, fmt.Errorf("keyfunc: IPConfig.Hops is %d: want 1 to %d, or 0 to find the client by Trusted", c.Hops, maxHops)
	}
	if c.TrustAll && len(c.Trusted) > 0 {
		return nil, errors.New("keyfunc: IPConfig.TrustAll and IPConfig.Trusted contradict each other")
	}
	trusted, err := newSpans(c.Trusted)
	if err != nil {
		return nil, err
	}
	r := &ipRules{
		trusted:   trusted,
		trustAll:  c.TrustAll,
		trustUnix: c.TrustUnix,
		header:    http.CanonicalHeaderKey(header),
		metadata:  strings.ToLower(header),
		hops:      c.Hops,
		bits:      bits,
	}
	if r.hops > 0 && r.believesNobody() {
		return nil, errors.New("keyfunc: IPConfig.Hops needs Trusted, TrustUnix or TrustAll: the header of an untrusted peer is never read")
	}
	if r.trustAll && r.hops == 0 {
		warnTrustsAll.log()
	}
	return r, nil
}

// fromRequest is an HTTP.
func (r *ipRules) fromRequest(req *http.Request) (string, error) {
	peer, ok := requestPeer(req)
	if !ok {
		return "", errNoPeer
	}
	if r.believes(peer) {
		return r.client(peer, req.Header[r.header]), nil
	}
	if r.believesNobody() && warnIgnored.pending() && len(req.Header[r.header]) > 0 {
		warnIgnored.log()
	}
	return r.key(peer), nil
}

// fromCall is an RPC.
func (r *ipRules) fromCall(ctx context.Context, _ string) (string, error) {
	peer, ok := callPeer(ctx)
	if !ok {
		return "", errNoPeer
	}
	if r.believes(peer) {
		return r.client(peer, incoming(ctx, r.metadata)), nil
	}
	if r.believesNobody() && warnIgnored.pending() && len(incoming(ctx, r.metadata)) > 0 {
		warnIgnored.log()
	}
	return r.key(peer), nil
}

// fromPeer is an RPC that never looks at the metadata.
func (r *ipRules) fromPeer(ctx context.Context, _ string) (string, error) {
	peer, ok := callPeer(ctx)
	if !ok {
		return "", errNoPeer
	}
	return r.key(peer), nil
}
