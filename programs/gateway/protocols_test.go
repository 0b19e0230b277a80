package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// writePair writes a certificate for 127.0.0.1 and its key.
func writePair(t *testing.T, dir string, serial int64) (certificate, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	about := &x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	require.NoError(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	certificate, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(certificate, text, 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), 0o600))
	roots = x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(text))
	return certificate, key, roots
}

// Clients may use TLS with HTTP/1.1 and HTTP/2, and HTTP/2 in clear.
func TestProtocols(t *testing.T) {
	u := upstream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	certificate, key, roots := writePair(t, t.TempDir(), 1)
	const route = "timeouts: {unready: 0s}\nroutes: [{pattern: /, upstream: 'UPSTREAM'}]\n"
	secure := start(t, "tls: {certificate: "+certificate+", key: "+key+"}\n"+strings.Replace(route, "UPSTREAM", u, 1))
	clear := start(t, strings.Replace(route, "UPSTREAM", u, 1))
	for _, test := range []struct {
		url, proto string
		set        func(*http.Protocols)
	}{
		{"https://" + strings.TrimPrefix(secure.front, "http://"), "HTTP/1.1", func(p *http.Protocols) { p.SetHTTP1(true) }},
		{"https://" + strings.TrimPrefix(secure.front, "http://"), "HTTP/2.0", func(p *http.Protocols) { p.SetHTTP2(true) }},
		{clear.front, "HTTP/1.1", func(p *http.Protocols) { p.SetHTTP1(true) }},
		{clear.front, "HTTP/2.0", func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }},
	} {
		transport := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{RootCAs: roots}}
		test.set(transport.Protocols)
		resp, err := (&http.Client{Transport: transport}).Get(test.url)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 200, resp.StatusCode)
		require.Equal(t, test.proto, resp.Proto)
		transport.CloseIdleConnections()
	}
}

// Calls and streams of gRPC pass, with their status, and a denial is one of gRPC.
func TestGRPCUpstream(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	backend, service := grpc.NewServer(), health.NewServer()
	grpc_health_v1.RegisterHealthServer(backend, service)
	go func() { _ = backend.Serve(listener) }()
	t.Cleanup(backend.Stop)
	certificate, key, roots := writePair(t, t.TempDir(), 1)
	file := "timeouts: {unready: 0s, body: 50ms}\nroutes: [{pattern: /, upstream: 'h2c://" + listener.Addr().String() + "', limits: [{name: a, key: global, limit: 4/h}]}]\n"
	secure, clear := start(t, "tls: {certificate: "+certificate+", key: "+key+"}\n"+file), start(t, file)
	for _, test := range []struct {
		front string
		creds credentials.TransportCredentials
	}{{secure.front, credentials.NewClientTLSFromCert(roots, "")}, {clear.front, insecure.NewCredentials()}} {
		conn, err := grpc.NewClient(strings.TrimPrefix(test.front, "http://"), grpc.WithTransportCredentials(test.creds))
		require.NoError(t, err)
		client := grpc_health_v1.NewHealthClient(conn)
		service.SetServingStatus("s", grpc_health_v1.HealthCheckResponse_SERVING)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		resp, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "s"})
		require.NoError(t, err)
		require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, resp.Status)
		_, err = client.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "unknown"})
		require.Equal(t, codes.NotFound, status.Code(err))

		stream, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{Service: "s"})
		require.NoError(t, err)
		_, err = stream.Recv()
		require.NoError(t, err)
		time.Sleep(100 * time.Millisecond) // twice as long as the body of another request may stop
		service.SetServingStatus("s", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
		resp, err = stream.Recv()
		require.NoError(t, err)
		require.Equal(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING, resp.Status)

		_, err = client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		_, err = client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		cancel()
		require.NoError(t, conn.Close())
	}
}
