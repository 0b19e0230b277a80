package proxy_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/gateway/proxy"
)

// An upstream with a private CA that asks for a certificate is reached with upstream_tls, and not
// without it.
func TestUpstreamTLS(t *testing.T) {
	dir := t.TempDir()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gateway"}, NotAfter: time.Now().Add(time.Hour)}
	own, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	require.NoError(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)

	u := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	u.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	u.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	u.StartTLS()
	defer u.Close()
	for name, block := range map[string]*pem.Block{
		"ca": {Type: "CERTIFICATE", Bytes: u.Certificate().Raw}, "crt": {Type: "CERTIFICATE", Bytes: own}, "key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	ask := func(file string) (int, string) {
		f, err := config.Parse("f", []byte(file+"routes: [{pattern: /, upstream: '"+u.URL+"'}]\n"))
		require.NoError(t, err)
		g, err := proxy.New(f, proxy.Options{Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		defer g.Close()
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		return w.Code, w.Body.String()
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	status, text := ask("upstream_tls: {ca: '" + in("ca") + "', certificate: '" + in("crt") + "', key: '" + in("key") + "'}\n")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "gateway", text)
	status, _ = ask("")
	require.Equal(t, http.StatusBadGateway, status)

	f, err := config.Parse("f", []byte("upstream_tls: {ca: '"+in("key")+"'}\nroutes: [{pattern: /, upstream: '"+u.URL+"'}]\n"))
	require.NoError(t, err)
	_, err = proxy.New(f, proxy.Options{Log: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, "f:1:1: upstream_tls: ")
	_, err = config.Parse("f", []byte("upstream_tls: {key: k}\nroutes: [{pattern: /, upstream: '"+u.URL+"'}]\n"))
	require.ErrorContains(t, err, "wants certificate and key")
}
