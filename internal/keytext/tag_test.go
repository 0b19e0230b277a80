package keytext_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/keytext"
)

// Every key that is written is read as the class of its kind, also with the digest of a long text.
func TestKeysAreReadAsTheyAreWritten(t *testing.T) {
	certificate := func(leaf x509.Certificate) string {
		key, ok := keytext.Certificate(&tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{&leaf}}})
		require.True(t, ok)
		return key
	}
	long := strings.Repeat("x", 300)
	value := func(v string) string {
		key, ok := keytext.Value(v)
		require.True(t, ok)
		return key
	}
	for class, keys := range map[string][]string{
		"global":       {""},
		"unidentified": {keytext.Missing.Key()},
		"address":      {keytext.Unix.Key(), keytext.Hop.With("10.0.0.1"), "203.0.113.7", "2001:db8::/64", "2001:db8::1"},
		"caller": {keytext.Unmatched.Key(), keytext.Route("example.com/items"), value("203.0.113.7"), value(long),
			value("~secret:0123"), value("alice"), value("a.b"), value("dead.beef")},
		"secret":   {keytext.Secret.With("0123")},
		"combined": {keytext.Join([]string{"a", long}), keytext.Join(nil)},
		"method":   {keytext.Route("/a.B/C")},
		"certificate": {
			certificate(x509.Certificate{URIs: []*url.URL{{Scheme: "https", Host: "a"}}}), certificate(x509.Certificate{DNSNames: []string{"a"}}),
			certificate(x509.Certificate{DNSNames: []string{long}}), certificate(x509.Certificate{EmailAddresses: []string{"a@b"}}),
			certificate(x509.Certificate{IPAddresses: []net.IP{net.IPv4(192, 0, 2, 1)}}),
		},
	} {
		require.Contains(t, keytext.Classes, class)
		for _, key := range keys {
			require.Equal(t, class, keytext.ClassOf(key), "%.40q", key)
		}
	}
}
