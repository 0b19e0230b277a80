// Package clientip finds the address of a client behind proxies, by rules that
// HTTP and gRPC share. The adapters (packages keyfunc and rpckey) supply the
// address of the connecting peer and the lines of one header. Package keyfunc
// documents the rules.
package clientip

import (
	"net/netip"
)

// Rules is a checked [Config]. It is safe for concurrent use.
type Rules struct {
	// Header is the header to read, canonical for net/http.
	Header string
	// Metadata is the same name in lower case, for gRPC.
	Metadata string

	trusted   spans
	trustAll  bool
	trustUnix bool
	hops      int
	bits      int
	keys      keyCache
}

// Trusts reports whether a is a proxy, whose claim about the address before it
// counts. It compares the address as received: before NAT64 is unwrapped and
// before IPv6 is masked. Otherwise every host in the /64 of a proxy would be
// a proxy.
func (r *Rules) Trusts(a Address) bool {
	if a.isUnix() {
		return r.trustUnix
	}
	return r.trustAll || r.trusted.contains(a.ip)
}

// trustsNothing reports whether the header is never read.
func (r *Rules) trustsNothing() bool {
	return len(r.trusted) == 0 && !r.trustAll && !r.trustUnix
}

// Client is the key of the client behind a trusted peer, found in the lines of
// the header.
func (r *Rules) Client(peer Address, lines []string) string {
	client, ok := r.forwardedFor(peer, lines)
	if !ok {
		return "~hop:" + r.Key(peer)
	}
	return r.Key(client)
}

// Key is the text of an address: IPv4 whole, IPv6 as its prefix, NAT64 as the
// IPv4 address inside.
func (r *Rules) Key(a Address) string {
	if a.text != "" {
		return a.text
	}
	masked := a.ip
	switch {
	case masked.isNAT64():
		masked = masked.embedded()
	case !masked.is4():
		masked = masked.mask(r.bits)
	}
	key := r.keys.get(masked)
	if key == "" {
		key = r.format(masked)
		r.keys.put(masked, key)
	}
	return key
}

// format is the text of an address that is masked already.
func (r *Rules) format(a ip) string {
	if a.is4() || r.bits == 128 {
		return a.addr().String()
	}
	return netip.PrefixFrom(a.addr(), r.bits).String()
}

// MayWarn reports whether a header from an untrusted peer is still to be
// logged. If so, the caller passes the lines of the header to [Rules.Ignore].
func (r *Rules) MayWarn() bool {
	return r.trustsNothing() && warnIgnored.Pending()
}

// Ignore logs, once in the life of the process, that a header is ignored.
func (r *Rules) Ignore(lines []string) {
	if len(lines) > 0 {
		warnIgnored.Log("")
	}
}
