package keyfunc

import (
	"net/netip"
)

// ipRules is a checked [IPConfig], ready for use.
type ipRules struct {
	trusted   spans
	trustAll  bool
	trustUnix bool
	header    string // canonical for net/http
	metadata  string // the same in lower case, for gRPC
	hops      int
	bits      int
	texts     interned
}

// believes reports whether a hop's word about the hop before it counts. The
// address is compared as it stands: before NAT64 is unwrapped and before IPv6
// is masked. Otherwise the neighbours of a proxy in its /64 would be proxies.
func (r *ipRules) believes(h hop) bool {
	if h.isLocal() {
		return r.trustUnix
	}
	return r.trustAll || r.trusted.contains(h.ip)
}

// believesNobody reports whether the header is never read.
func (r *ipRules) believesNobody() bool {
	return len(r.trusted) == 0 && !r.trustAll && !r.trustUnix
}

// client is the key of the client behind a peer that is believed.
func (r *ipRules) client(peer hop, lines []string) string {
	h, ok := r.walk(peer, lines)
	if !ok {
		return "~hop:" + r.key(peer)
	}
	return r.key(h)
}

// key is the text of an address: IPv4 whole, IPv6 as the prefix it is counted
// by, NAT64 as the IPv4 address inside.
func (r *ipRules) key(h hop) string {
	if h.text != "" {
		return h.text
	}
	a := h.ip
	switch {
	case a.isNAT64():
		a = a.embedded()
	case !a.is4():
		a = a.mask(r.bits)
	}
	text := r.texts.get(a)
	if text == "" {
		text = r.write(a)
		r.texts.put(a, text)
	}
	return text
}

// write is the text of an address that is masked already.
func (r *ipRules) write(a ip) string {
	if a.is4() || r.bits == 128 {
		return a.addr().String()
	}
	return netip.PrefixFrom(a.addr(), r.bits).String()
}
