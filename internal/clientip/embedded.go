package clientip

import (
	"fmt"
	"net/netip"
	"slices"
)

// embedding is an IPv6 prefix whose addresses hold an IPv4 address: the four bytes
// after the prefix, without byte 8 (RFC 6052 section 2.2).
type embedding struct {
	prefix ip
	bits   int
}

// wellKnown are the prefixes that no operator chooses: IPv4-compatible (RFC 4291), SIIT
// (RFC 2765), NAT64 (RFC 6052 and 8215) and 6to4 (RFC 3056).
var wellKnown = []embedding{
	{ip{}, 96},
	{ip{0, 0xffff_0000_0000_0000}, 96},
	{ip{0x0064_ff9b_0000_0000, 0}, 96},
	{ip{0x0064_ff9b_0001_0000, 0}, 96},
	{ip{0x2002_0000_0000_0000, 0}, 16},
}

// newEmbeddings adds the operator's own prefixes to the well-known ones.
func newEmbeddings(own []netip.Prefix) ([]embedding, error) {
	all := slices.Clip(wellKnown)
	for _, p := range own {
		if !p.IsValid() || !p.Addr().Is6() || !slices.Contains([]int{32, 40, 48, 56, 64, 96}, p.Bits()) {
			return nil, fmt.Errorf("keyfunc: IPConfig.NAT64 has %q: want IPv6 prefixes of 32, 40, 48, 56, 64 or 96 bits", p)
		}
		all = append(all, embedding{ipOf(p.Addr()).mask(p.Bits()), p.Bits()})
	}
	return all, nil
}

// embedded is the IPv4 address inside a, and a itself if there is none: 0.0.0.0/8 has no
// hosts, and ::1 is the loopback address.
func (r *Rules) embedded(a ip) ip {
	for _, e := range r.embeddings {
		if a.mask(e.bits) == e.prefix {
			if v := e.within(a); v>>24 != 0 {
				return ip4(v)
			}
		}
	}
	return a
}

func (e embedding) within(a ip) (v uint32) {
	bytes, at := a.bytes(), e.bits/8
	for range 4 {
		if at == 8 {
			at++
		}
		v = v<<8 | uint32(bytes[at])
		at++
	}
	return v
}
