// Package clientip finds the address of a client behind proxies, by rules that
// HTTP and gRPC share. The adapters (packages keyfunc and rpckey) supply the
// address of the connecting peer and the lines of one header. Package keyfunc
// documents the rules.
package clientip

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/sluice-go/sluice/internal/warning"
)

// Config has the fields of keyfunc.IPConfig, which documents them.
type Config struct {
	Trusted   []netip.Prefix
	Header    string
	Hops      int
	IPv4Bits  int
	IPv6Bits  int
	NAT64     []netip.Prefix
	TrustUnix bool
	TrustAll  bool
}

// New checks the configuration. Its errors name the field and the value.
func New(c Config) (*Rules, error) {
	header := c.Header
	if header == "" {
		header = headerXForwardedFor
	}
	if problem := HeaderProblem(header); problem != "" {
		return nil, fmt.Errorf("keyfunc: IPConfig.Header %q %s", header, problem)
	}
	bits4, bits6 := cmp.Or(c.IPv4Bits, 32), cmp.Or(c.IPv6Bits, 64)
	if bits4 < 8 || bits4 > 32 {
		return nil, fmt.Errorf("keyfunc: IPConfig.IPv4Bits is %d: want 8 to 32, or 0 for 32", c.IPv4Bits)
	}
	if bits6 < 32 || bits6 > 128 {
		return nil, fmt.Errorf("keyfunc: IPConfig.IPv6Bits is %d: want 32 to 128, or 0 for 64", c.IPv6Bits)
	}
	if c.Hops < 0 || c.Hops > maxHops {
		return nil, fmt.Errorf("keyfunc: IPConfig.Hops is %d: want 1 to %d, or 0 to find the client by Trusted", c.Hops, maxHops)
	}
	if c.TrustAll && len(c.Trusted) > 0 {
		return nil, errors.New("keyfunc: IPConfig.TrustAll and IPConfig.Trusted contradict each other: set one of them")
	}
	trusted, err := newSpans(c.Trusted)
	if err != nil {
		return nil, err
	}
	embeddings, err := newEmbeddings(c.NAT64)
	if err != nil {
		return nil, err
	}
	r := &Rules{
		field:      field{http.CanonicalHeaderKey(header), strings.ToLower(header)},
		trusted:    trusted,
		trustAll:   c.TrustAll,
		trustUnix:  c.TrustUnix,
		hops:       c.Hops,
		bits4:      bits4,
		bits6:      bits6,
		embeddings: embeddings,
	}
	if r.hops > 0 && r.trustsNothing() {
		return nil, errors.New("keyfunc: IPConfig.Hops needs Trusted, TrustUnix or TrustAll: the header of an untrusted peer is never read")
	}
	if r.trustAll && r.hops == 0 {
		warnTrustsAll.Log()
	}
	return r, nil
}

// HeaderProblem is the reason why name cannot be the name of a header that
// net/http keeps in http.Request.Header (RFC 9110 section 5.1), or "".
func HeaderProblem(name string) string {
	switch {
	case name == "":
		return "is empty"
	case tokenLen(name) < len(name):
		return "has a character that header names cannot have"
	case http.CanonicalHeaderKey(name) == "Host":
		return "is Host, which net/http keeps apart from the headers: use keyfunc.Host"
	}
	return ""
}

// Rules is a checked [Config]. It is safe for concurrent use.
type Rules struct {
	field      field // to read
	trusted    spans
	trustAll   bool
	trustUnix  bool
	hops       int
	bits4      int
	bits6      int
	embeddings []embedding
	keys       keyCache
	lost       warning.Share // requests whose client is not found
}

// field is the name of a header: canonical for net/http, and in lower case for gRPC.
type field struct{ header, metadata string }

// trusts reports whether a is a proxy, whose claim about the address before it
// counts. It compares the address as received: before embedded IPv4 is unwrapped and
// before IPv6 is masked. Otherwise every host in the /64 of a proxy would be
// a proxy.
func (r *Rules) trusts(a Address) bool {
	if a.isUnix() {
		return r.trustUnix
	}
	return r.trustAll || r.trusted.contains(a.ip)
}

// trustsNothing reports whether the header is never read.
func (r *Rules) trustsNothing() bool {
	return len(r.trusted) == 0 && !r.trustAll && !r.trustUnix
}

// Key is the text of an address, or of its prefix; that of IPv4 also inside IPv6.
func (r *Rules) Key(a Address) string {
	if a.text != "" && (r.bits4 == 32 || a.isUnix()) {
		return a.text
	}
	masked, bits, whole := r.embedded(a.ip), r.bits6, 128
	if masked.is4() {
		bits, whole = r.bits4, 32
	}
	masked = masked.mask(128 - whole + bits)
	key := r.keys.get(masked)
	if key == "" {
		if key = masked.addr().String(); bits < whole {
			key += "/" + strconv.Itoa(bits)
		}
		r.keys.put(masked, key)
	}
	return key
}

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
	if a.is4() {
		return a
	}
	for _, e := range r.embeddings {
		if a.hi>>48 == e.prefix.hi>>48 && a.mask(e.bits) == e.prefix {
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

// cachedKeys bounds the memory: 8 KiB of pointers, and at most as many entries
// of about 100 bytes each.
const cachedKeys = 1 << 10

// keyCache keeps the texts of recent addresses, so that a returning client
// costs no allocation. Each address has one slot; two addresses of the same
// slot replace each other, which costs one allocation. A flood of addresses
// therefore cannot fill it.
type keyCache struct {
	slots [cachedKeys]atomic.Pointer[cachedKey]
}

// cachedKey is immutable.
type cachedKey struct {
	addr ip
	text string
}

// get is the text of a, or "".
func (c *keyCache) get(a ip) string {
	if e := c.slots[a.slot(cachedKeys)].Load(); e != nil && e.addr == a {
		return e.text
	}
	return ""
}

// put stores the text of a.
func (c *keyCache) put(a ip, text string) {
	c.slots[a.slot(cachedKeys)].Store(&cachedKey{addr: a, text: text})
}
