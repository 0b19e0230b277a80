package keyfunc

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// span is a closed interval of addresses of one family.
type span struct{ lo, hi netip.Addr }

// spans are sorted, disjoint and not adjacent, IPv4 before IPv6. The lists
// that content delivery networks publish have hundreds of prefixes; a binary
// search keeps the cost of a hop level.
type spans []span

// newSpans merges prefixes. It fails on an invalid prefix, and on prefixes
// that together hold all of IPv4 or all of IPv6, however they are cut.
func newSpans(prefixes []netip.Prefix) (spans, error) {
	all := make(spans, 0, len(prefixes))
	for _, p := range prefixes {
		s, err := spanOf(p)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b span) int { return a.lo.Compare(b.lo) })
	merged := all[:0]
	for _, s := range all {
		merged = merged.add(s)
	}
	for _, s := range merged {
		if s.isEverything() {
			return nil, errors.New("keyfunc: the trusted prefixes hold every address: anybody could name any client; if that is meant, set IPConfig.TrustAll")
		}
	}
	return merged, nil
}

// add appends s, or widens the last span when s touches it.
func (t spans) add(s span) spans {
	if n := len(t); n > 0 {
		last := &t[n-1]
		if next := last.hi.Next(); s.lo.Compare(last.hi) <= 0 || s.lo == next {
			if last.hi.Less(s.hi) {
				last.hi = s.hi
			}
			return t
		}
	}
	return append(t, s)
}

// contains reports whether a lies in one of the spans.
func (t spans) contains(a netip.Addr) bool {
	lo, hi := 0, len(t)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t[mid].hi.Less(a) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(t) && t[lo].lo.Compare(a) <= 0
}

// spanOf is the span of one prefix. Host bits are ignored, as netip.Prefix
// does. A prefix of IPv4-mapped addresses is taken for the IPv4 prefix it
// means, because hops are unmapped before they are compared.
func spanOf(p netip.Prefix) (span, error) {
	if !p.IsValid() {
		return span{}, errors.New("keyfunc: a trusted prefix is the zero netip.Prefix or out of range")
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return span{}, fmt.Errorf("keyfunc: the trusted prefix %q is wider than the IPv4-mapped addresses: write it as IPv4", p)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	hi, _ := netip.AddrFromSlice(b)
	return span{lo: p.Masked().Addr(), hi: hi}, nil
}

// isEverything reports whether s is a whole address family.
func (s span) isEverything() bool {
	return s.lo.IsUnspecified() && !s.hi.Next().IsValid()
}
