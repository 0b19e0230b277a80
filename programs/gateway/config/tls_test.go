package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/programs/gateway/config"
)

// A renewed certificate comes into use; half of a pair does not.
func TestRenewedCertificate(t *testing.T) {
	dir := t.TempDir()
	from := config.TLS{Certificate: filepath.Join(dir, "c"), Key: filepath.Join(dir, "k")}
	write := func(path, kind string, der []byte, at time.Time) {
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	pair := func(serial int64) (certificate, key []byte) {
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		about := &x509.Certificate{SerialNumber: big.NewInt(serial)}
		certificate, err = x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
		require.NoError(t, err)
		key, err = x509.MarshalPKCS8PrivateKey(private)
		require.NoError(t, err)
		return certificate, key
	}
	_, err := from.Config()
	require.ErrorIs(t, err, os.ErrNotExist)
	first, firstKey := pair(1)
	second, secondKey := pair(2)
	write(from.Certificate, "CERTIFICATE", first, time.Unix(1, 0))
	write(from.Key, "PRIVATE KEY", firstKey, time.Unix(1, 0))
	synctest.Test(t, func(t *testing.T) {
		c, err := from.Config()
		require.NoError(t, err)
		serves := func(der []byte) {
			t.Helper()
			got, err := c.GetConfigForClient(nil)
			require.NoError(t, err)
			require.Equal(t, der, got.Certificates[0].Certificate[0])
		}
		serves(first)
		write(from.Certificate, "CERTIFICATE", second, time.Unix(2, 0))
		time.Sleep(11 * time.Second)
		serves(first)
		write(from.Key, "PRIVATE KEY", secondKey, time.Unix(2, 0))
		time.Sleep(11 * time.Second)
		serves(second)
	})
	from.ClientCA = filepath.Join(dir, "ca")
	write(from.ClientCA, "CERTIFICATE", first, time.Unix(1, 0))
	synctest.Test(t, func(t *testing.T) {
		c, err := from.Config()
		require.NoError(t, err)
		before, err := c.GetConfigForClient(nil)
		require.NoError(t, err)
		write(from.ClientCA, "CERTIFICATE", second, time.Unix(2, 0))
		time.Sleep(11 * time.Second)
		after, err := c.GetConfigForClient(nil)
		require.NoError(t, err)
		require.False(t, before.ClientCAs.Equal(after.ClientCAs), "new authorities of clients")
		require.Equal(t, tls.RequireAndVerifyClientCert, after.ClientAuth)
	})
	none, err := config.TLS{}.Config()
	require.NoError(t, err)
	require.Nil(t, none)
	from.ClientCA = from.Key
	_, err = from.Config()
	require.ErrorContains(t, err, "has no certificate")
}
