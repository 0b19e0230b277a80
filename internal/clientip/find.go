package clientip

import (
	"slices"
	"strings"

	"github.com/sluice-go/sluice/internal/keytext"
	"github.com/sluice-go/sluice/internal/warning"
)

// Find is the key of the client of a request from a peer. lines returns those of a header, which has
// one name in net/http and one in gRPC.
func (r *Rules) Find(peer Address, lines func(header, metadata string) []string) string {
	if r.trusts(peer) {
		found := lines(r.field.header, r.field.metadata)
		client, ok := r.forwardedFor(peer, found)
		if !ok {
			r.lose(warnUnreadable)
			return keytext.Hop.With(r.Key(peer))
		}
		if len(found) > 0 {
			r.lost.Usual(1)
		} else if warnElsewhere.Pending() && slices.ContainsFunc(usual, func(f field) bool { return len(lines(f.header, f.metadata)) > 0 }) {
			r.lose(warnElsewhere)
		}
		return r.Key(client)
	}
	if warnIgnored.Pending() && len(lines(r.field.header, r.field.metadata)) > 0 {
		if r.trustsNothing() {
			warnIgnored.Log()
		} else {
			r.lose(warnIgnored)
		}
	}
	return r.Key(peer)
}

// usual are the headers that many proxies send.
var usual = []field{
	{headerXForwardedFor, strings.ToLower(headerXForwardedFor)},
	{headerForwarded, strings.ToLower(headerForwarded)},
	{"X-Real-Ip", "x-real-ip"},
}

// lose counts a request whose client is not found, and logs that these are most. Single ones are
// no mistake: any client may send the header.
func (r *Rules) lose(why *warning.Once) {
	if r.lost.Odd() {
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
