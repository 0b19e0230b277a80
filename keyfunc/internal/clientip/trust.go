package clientip

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sort"
)

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
