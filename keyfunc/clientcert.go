package keyfunc

import (
	"net/http"

	"github.com/sluice-go/sluice/internal/keytext"
)

var errNoCertificate = noKey("no verified client certificate with a usable name")

// ClientCert keys requests by the identity in the client certificate of the
// connection, if crypto/tls has verified it (tls.RequireAndVerifyClientCert, or
// tls.VerifyClientCertIfGiven).
//
// The key is the SPIFFE ID, "spiffe://example.org/service", if there is one.
// Otherwise it is the first name of the first kind present: "~uri:", "~dns:",
// "~email:" or "~ip:" and the name. A name above 128 bytes is hashed, as in
// "~dns#". The common name is not used.
//
// These are [ErrNoKey]:
//   - no certificate, or one that was not verified
//   - a certificate without names
//   - a SPIFFE ID beside other URIs, which X509-SVID forbids, or without trust
//     domain
//   - a certificate that only a VerifyPeerCertificate callback has accepted,
//     because then no verified chain is recorded: use [Context] with the
//     identity that the callback's package provides
func ClientCert() HTTP {
	return func(r *http.Request) (string, error) {
		if key, ok := keytext.Certificate(r.TLS); ok {
			return key, nil
		}
		return "", errNoCertificate
	}
}
