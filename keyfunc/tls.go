package keyfunc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

var errNoCertificate = noKey("no verified client certificate that names anybody")

// TLSIdentity is whom the client certificate of the call names, provided that
// crypto/tls has verified it (tls.RequireAndVerifyClientCert, or
// tls.VerifyClientCertIfGiven).
//
// The key is the SPIFFE ID, "spiffe://example.org/service", if there is one.
// Otherwise it is the first name of the first kind present: "~uri:", "~dns:",
// "~email:" or "~ip:" and the name. A name above 128 bytes is hashed, as in
// "~dns#". The common name is not used.
//
// No certificate, one that was not verified, one without names, one with a
// SPIFFE ID beside other URIs, which X509-SVID forbids, and one with a SPIFFE
// ID without trust domain are [ErrNoKey]. So are certificates that a
// VerifyPeerCertificate callback has accepted alone, because no verified chain
// is recorded then: use [RPCContext] with the identity that the callback's
// package gives.
func TLSIdentity() RPC {
	return func(ctx context.Context, _ string) (string, error) {
		if p, ok := peer.FromContext(ctx); ok && p != nil {
			if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
				return certificateKey(&info.State)
			}
		}
		return "", errNoCertificate
	}
}

// ClientCert is [TLSIdentity] for net/http.
func ClientCert() HTTP {
	return func(r *http.Request) (string, error) { return certificateKey(r.TLS) }
}

// certificateKey is the key of the client at the other end of a TLS
// connection.
func certificateKey(state *tls.ConnectionState) (string, error) {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return "", errNoCertificate
	}
	leaf := state.VerifiedChains[0][0]
	if id, spiffe := spiffeID(leaf); spiffe {
		if id == "" {
			return "", errNoCertificate
		}
		return id, nil
	}
	switch {
	case len(leaf.URIs) > 0:
		return tagged("uri", leaf.URIs[0].String()), nil
	case len(leaf.DNSNames) > 0:
		return tagged("dns", leaf.DNSNames[0]), nil
	case len(leaf.EmailAddresses) > 0:
		return tagged("email", leaf.EmailAddresses[0]), nil
	case len(leaf.IPAddresses) > 0:
		return tagged("ip", leaf.IPAddresses[0].String()), nil
	}
	return "", errNoCertificate
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
	if !standsPlain(id) {
		id = tagged("uri", id)
	}
	return id, true
}
