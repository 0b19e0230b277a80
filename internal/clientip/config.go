package clientip

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// Config has the fields of keyfunc.IPConfig, which documents them.
type Config struct {
	Trusted   []netip.Prefix
	Header    string
	Hops      int
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
		Header:     http.CanonicalHeaderKey(header),
		Metadata:   strings.ToLower(header),
		trusted:    trusted,
		trustAll:   c.TrustAll,
		trustUnix:  c.TrustUnix,
		hops:       c.Hops,
		bits:       bits,
		embeddings: embeddings,
	}
	if r.hops > 0 && r.trustsNothing() {
		return nil, errors.New("keyfunc: IPConfig.Hops needs Trusted, TrustUnix or TrustAll: the header of an untrusted peer is never read")
	}
	if r.trustAll && r.hops == 0 {
		warnTrustsAll.Log("")
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
