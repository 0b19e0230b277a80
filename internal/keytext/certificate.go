package keytext

import (
	"crypto/tls"
	"crypto/x509"
)

// Certificate is the key of the client at the other end of a TLS connection. It
// reports false without a verified certificate that contains a usable name.
func Certificate(state *tls.ConnectionState) (string, bool) {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return "", false
	}
	leaf := state.VerifiedChains[0][0]
	if id, spiffe := spiffeID(leaf); spiffe {
		return id, id != ""
	}
	switch {
	case len(leaf.URIs) > 0:
		return URI.of(leaf.URIs[0].String()), true
	case len(leaf.DNSNames) > 0:
		return DNS.of(leaf.DNSNames[0]), true
	case len(leaf.EmailAddresses) > 0:
		return Email.of(leaf.EmailAddresses[0]), true
	case len(leaf.IPAddresses) > 0:
		return IP.of(leaf.IPAddresses[0].String()), true
	}
	return "", false
}

// spiffeID is the SPIFFE ID of a certificate. spiffe reports whether there is
// one; it is "" when it is not the only URI or has no trust domain.
func spiffeID(leaf *x509.Certificate) (id string, spiffe bool) {
	for _, u := range leaf.URIs {
		if u.Scheme == "spiffe" {
			spiffe = true
		}
	}
	if !spiffe || len(leaf.URIs) != 1 || leaf.URIs[0].Host == "" {
		return "", spiffe
	}
	id = leaf.URIs[0].String()
	if !plain(id) {
		id = URI.of(id)
	}
	return id, true
}
