// Package clientip finds the address of a client behind proxies, by rules that
// HTTP and gRPC share. The adapters (packages keyfunc and rpckey) supply the
// address of the connecting peer and the lines of one header. Package keyfunc
// documents the rules.
package clientip

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sort"

	"github.com/sluice-go/sluice/internal/keytext"
)

// Rules is a checked [Config]. It is safe for concurrent use.
type Rules struct {
	// Header is the header to read, canonical for net/http.
	Header string
	// Metadata is the same name in lower case, for gRPC.
	Metadata string

	trusted    spans
	trustAll   bool
	trustUnix  bool
	hops       int
	bits       int
	embeddings []embedding
	keys       keyCache
}

// Trusts reports whether a is a proxy, whose claim about the address before it
// counts. It compares the address as received: before embedded IPv4 is unwrapped and
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
		return keytext.Hop.With(r.Key(peer))
	}
	return r.Key(client)
}

// Key is the text of an address: IPv4 whole, also inside IPv6, and other IPv6 as its
// prefix.
func (r *Rules) Key(a Address) string {
	if a.text != "" {
		return a.text
	}
	masked := r.embedded(a.ip)
	if !masked.is4() {
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

// span is a closed interval of addresses.
type span struct{ lo, hi ip }

// spans are sorted, disjoint and not adjacent. The lists that content
// delivery networks publish have hundreds of prefixes; a binary search keeps
// the cost of an address low.
type spans []span

// everything is all of IPv4. All of IPv6 cannot occur, since no span
// reaches over the IPv4-mapped addresses.
var everything = span{ip4(0), ip4(^uint32(0))}

// newSpans merges prefixes. It fails on an invalid prefix, and on prefixes
// that hold all of IPv4 or IPv6, however IPv4 is cut in pieces.
func newSpans(prefixes []netip.Prefix) (spans, error) {
	all := make(spans, 0, len(prefixes))
	for _, p := range prefixes {
		s, err := spanOf(p)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	sort.Sort(all)
	merged := all[:0]
	for _, s := range all {
		merged = merged.add(s)
	}
	if merged.covers(everything) {
		return nil, errors.New("keyfunc: the trusted prefixes hold all of IPv4, so any client could choose its key: list only your proxies, or set IPConfig.TrustAll")
	}
	return merged, nil
}

// Len, Less and Swap implement sort.Interface: slices.SortFunc would add 20 kB to
// every program.
func (t spans) Len() int           { return len(t) }
func (t spans) Less(i, j int) bool { return t[i].lo.less(t[j].lo) }
func (t spans) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }

// add appends s, which does not begin before the last span, or widens the
// last span if s touches it.
func (t spans) add(s span) spans {
	if n := len(t); n > 0 {
		last := &t[n-1]
		if !last.hi.less(s.lo) || s.lo == last.hi.next() {
			if last.hi.less(s.hi) {
				last.hi = s.hi
			}
			return t
		}
	}
	return append(t, s)
}

// contains reports whether a lies in one of the spans.
func (t spans) contains(a ip) bool {
	from, to := 0, len(t)
	for from < to {
		mid := int(uint(from+to) >> 1)
		if t[mid].hi.less(a) {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return from < len(t) && !a.less(t[from].lo)
}

// covers reports whether all of s lies in one of the spans.
func (t spans) covers(s span) bool {
	return slices.ContainsFunc(t, func(u span) bool {
		return !s.lo.less(u.lo) && !u.hi.less(s.hi)
	})
}

// spanOf is the span of one prefix. Host bits are ignored. A prefix of
// IPv4-mapped addresses is the corresponding IPv4 prefix; one that holds them all
// and more is an error, since it would include all of IPv4.
func spanOf(p netip.Prefix) (span, error) {
	if !p.IsValid() {
		return span{}, errors.New("keyfunc: a trusted prefix is the zero netip.Prefix or out of range")
	}
	bits := p.Bits()
	if p.Addr().Is4() {
		bits += 96
	}
	a := ipOf(p.Addr()).mask(bits)
	if bits < 96 && a == everything.lo.mask(bits) {
		return span{}, fmt.Errorf("keyfunc: the trusted prefix %q holds the IPv4-mapped addresses and so all of IPv4, and any client could choose its key: list only your proxies, or set IPConfig.TrustAll", p)
	}
	return span{lo: a, hi: a.last(bits)}, nil
}
