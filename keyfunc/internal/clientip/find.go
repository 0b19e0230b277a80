package clientip

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/internal/keytext"
	"github.com/sluice-go/sluice/internal/warning"
)

// Lines returns those of a header, which has one name in net/http and one in gRPC.
type Lines func(header, metadata string) []string

// Find is the key of the client of a request from a peer.
func (r *Rules) Find(peer Address, lines Lines) string {
	client, ok := r.client(peer, lines)
	if !ok {
		return keytext.Hop.With(r.Key(peer))
	}
	return r.Key(client)
}

// client is the client of a request from a peer; false if its address is unreadable.
func (r *Rules) client(peer Address, lines Lines) (client Address, ok bool) {
	if r.trusts(peer) {
		found := lines(r.field.header, r.field.metadata)
		client, ok = r.forwardedFor(peer, found)
		switch {
		case !ok:
			r.lose(warnUnreadable)
		case len(found) > 0:
			r.lost.Usual(1)
		case warnElsewhere.Pending() && sends(lines):
			r.lose(warnElsewhere)
		}
		return client, ok
	}
	if warnIgnored.Pending() && (len(lines(r.field.header, r.field.metadata)) > 0 || r.probes() && sends(lines)) {
		if r.trustsNothing() {
			warnIgnored.Log()
		} else {
			r.lose(warnIgnored)
		}
	}
	return peer, true
}

// Networks finds out which clients have an address in some networks.
type Networks struct {
	rules *Rules
	all   spans
}

// Within makes Networks of the clients that c finds.
func Within(c Config, networks []netip.Prefix) (*Networks, error) {
	rules, err := New(c)
	if err != nil {
		return nil, err
	}
	all, err := newSpans(networks)
	if err != nil || len(all) == 0 {
		return nil, errors.New("keyfunc: IPConfig.Within: want one valid network or more, not all of IPv4 or IPv6, in which nothing would be limited")
	}
	return &Networks{rules, all}, nil
}

// Have reports whether the client of a request from a peer is in one of the networks.
func (n *Networks) Have(peer Address, lines Lines) bool {
	client, ok := n.rules.client(peer, lines)
	return ok && !client.isUnix() && n.all.contains(n.rules.embedded(client.ip))
}

// usual are the headers that many proxies send.
var usual = []field{
	{headerXForwardedFor, strings.ToLower(headerXForwardedFor)},
	{headerForwarded, strings.ToLower(headerForwarded)},
	{"X-Real-Ip", "x-real-ip"},
	{"Cf-Connecting-Ip", "cf-connecting-ip"},
	{"True-Client-Ip", "true-client-ip"},
	{"Fastly-Client-Ip", "fastly-client-ip"},
	{"Fly-Client-Ip", "fly-client-ip"},
	{"Cloudfront-Viewer-Address", "cloudfront-viewer-address"},
	{"X-Client-Ip", "x-client-ip"},
	{"X-Azure-Clientip", "x-azure-clientip"},
	{"X-Envoy-External-Address", "x-envoy-external-address"},
}

// sends reports whether a request has one of the usual headers.
func sends(lines Lines) bool {
	return slices.ContainsFunc(usual, func(f field) bool { return len(lines(f.header, f.metadata)) > 0 })
}

// probes reports whether to look for the other headers in a request from an untrusted peer: not if
// the header was chosen, and without proxies in one of 16 requests, because then all come here.
func (r *Rules) probes() bool {
	return r.field.header == headerXForwardedFor && (!r.trustsNothing() || rand.Uint32()%16 == 0)
}

// lose counts a request whose client is not found, and logs that these are most. Single ones are
// no mistake: any client may send the header.
func (r *Rules) lose(why *warning.Once) {
	if r.lost.Odd(warning.Many) {
		why.Log()
	}
}

var (
	warnIgnored = &warning.Once{Line: warning.Line{
		Code:    "keyfunc.forwarded_untrusted",
		Message: "keyfunc: forwarding header ignored because it comes from no trusted proxy; behind a proxy all clients share one key",
		Do:      "pass the addresses of all your proxies to the key function",
	}}
	warnElsewhere = &warning.Once{Line: warning.Line{
		Code:    "keyfunc.forwarded_elsewhere",
		Message: "keyfunc: trusted proxies send another forwarding header than the one that is read, so all clients share one key",
		Do:      "name the header of your proxies in IPConfig.Header",
	}}
	warnUnreadable = &warning.Once{Line: warning.Line{
		Code:    "keyfunc.forwarded_unreadable",
		Message: "keyfunc: most forwarding headers of trusted proxies have no address that can be read, so all clients share one key",
		Do:      "compare the header with IPConfig.Header and IPConfig.Hops",
	}}
	warnTrustsAll = &warning.Once{Line: warning.Line{
		Code:    "keyfunc.trusts_all",
		Message: "keyfunc: with IPConfig.TrustAll and without Hops any client can choose its own key",
		Do:      "list your proxies in IPConfig.Trusted",
	}}
)
