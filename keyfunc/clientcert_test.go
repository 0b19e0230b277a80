package keyfunc_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
)

func uris(texts ...string) []*url.URL {
	var us []*url.URL
	for _, s := range texts {
		u, err := url.Parse(s)
		if err != nil {
			panic(err)
		}
		us = append(us, u)
	}
	return us
}

// verified is the state of a connection whose client showed a certificate.
func verified(c *x509.Certificate) *tls.ConnectionState {
	return &tls.ConnectionState{
		PeerCertificates: []*x509.Certificate{c},
		VerifiedChains:   [][]*x509.Certificate{{c, {}}},
	}
}

func TestClientCert(t *testing.T) {
	const id = "spiffe://example.org/ns/default/sa/web"
	all := x509.Certificate{
		URIs:           uris("https://example.com/a"),
		DNSNames:       []string{"web.example.com", "www.example.com"},
		EmailAddresses: []string{"web@example.com"},
		IPAddresses:    []net.IP{net.ParseIP("203.0.113.7")},
		Subject:        pkix.Name{CommonName: "web"},
	}
	for _, row := range []struct {
		name  string
		state *tls.ConnectionState
		want  string // "" for no key
	}{
		{"SPIFFE ID", verified(&x509.Certificate{URIs: uris(id)}), id},
		{"SPIFFE ID before DNS", verified(&x509.Certificate{URIs: uris(id), DNSNames: []string{"a"}}), id},
		{"URI", verified(&all), "~uri:https://example.com/a"},
		{"DNS", verified(&x509.Certificate{DNSNames: all.DNSNames, EmailAddresses: all.EmailAddresses}), "~dns:web.example.com"},
		{"mail", verified(&x509.Certificate{EmailAddresses: all.EmailAddresses, IPAddresses: all.IPAddresses}), "~email:web@example.com"},
		{"address", verified(&x509.Certificate{IPAddresses: all.IPAddresses}), "~ip:203.0.113.7"},
		{"DNS that looks like an address", verified(&x509.Certificate{DNSNames: []string{"203.0.113.7"}}), "~dns:203.0.113.7"},
		{"long SPIFFE ID", verified(&x509.Certificate{URIs: uris("spiffe://example.org/" + strings.Repeat("a", 200))}), "~uri#4e8946a4d0aa97c4f820fc20969544cb"},
		{"SPIFFE ID beside a URI", verified(&x509.Certificate{URIs: uris("https://example.com", id)}), ""},
		{"two SPIFFE IDs", verified(&x509.Certificate{URIs: uris(id, id+"2"), DNSNames: []string{"a"}}), ""},
		{"SPIFFE ID without trust domain", verified(&x509.Certificate{URIs: uris("spiffe:web"), DNSNames: []string{"a"}}), ""},
		{"common name", verified(&x509.Certificate{Subject: all.Subject}), ""},
		{"not verified", &tls.ConnectionState{PeerCertificates: []*x509.Certificate{&all}}, ""},
		{"empty chain", &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}, ""},
		{"no certificate", &tls.ConnectionState{}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := request("192.0.2.1:1", xff)
			r.TLS = row.state
			k, err := keyfunc.ClientCert()(r)
			if row.want == "" {
				requireNoKey(t, k, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.want, k)
		})
	}
	k, err := keyfunc.ClientCert()(request("192.0.2.1:1", xff))
	requireNoKey(t, k, err)
}
