//go:build unix

package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TLS is a certificate for servers on 127.0.0.1, made for one test.
type TLS struct {
	// Config is for clients that trust the certificate and nothing else.
	Config    *tls.Config
	cert, key string // files
}

// NewTLS makes a certificate.
func NewTLS(t testing.TB) *TLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	c := &TLS{Config: &tls.Config{RootCAs: x509.NewCertPool()}}
	c.cert, c.key = writePEM(t, "CERTIFICATE", cert), writePEM(t, "PRIVATE KEY", private)
	c.Config.RootCAs.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
	return c
}

func writePEM(t testing.TB, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tls.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return path
}

// Args are for [Start]: the server listens on addr with TLS too.
func (c *TLS) Args(t testing.TB) (args []string, addr string) {
	t.Helper()
	port := strconv.Itoa(freePort(t))
	return []string{"--tls-port", port, "--tls-cert-file", c.cert, "--tls-key-file", c.key,
		"--tls-ca-cert-file", c.cert, "--tls-auth-clients", "no"}, net.JoinHostPort("127.0.0.1", port)
}
