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
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
)

// running is the command on free ports.
type running struct {
	t           *testing.T
	folder      string
	front, back string
	log         *logged
	end         func() // ends it and waits for that; may be called again
}

func (r *running) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.folder, name)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(r.t, os.WriteFile(path+".new", []byte(text), 0o600))
	require.NoError(r.t, os.Rename(path+".new", path))
}

func run(t *testing.T, files map[string]string) *running {
	t.Helper()
	r := &running{t: t, folder: t.TempDir(), log: &logged{}}
	for name, text := range files {
		r.write(name, strings.ReplaceAll(text, "FOLDER", r.folder))
	}
	ctx, stop := context.WithCancel(context.Background())
	exit := make(chan int, 1)
	go func() {
		exit <- rateLimits.Run(ctx, []string{"-config", filepath.Join(r.folder, "rls.yaml"), "-poll", "10ms"}, io.Discard, r.log, nil)
	}()
	r.end = sync.OnceFunc(func() { stop(); <-exit })
	t.Cleanup(func() { r.end(); http.DefaultClient.CloseIdleConnections() })
	serving := regexp.MustCompile(`msg=serving listen=(\S+) admin=(\S+)`)
	require.Eventually(t, func() bool { return serving.MatchString(r.log.String()) }, 10*time.Second, time.Millisecond, r.log)
	at := serving.FindStringSubmatch(r.log.String())
	r.front, r.back = at[1], at[2]
	return r
}

const head = "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntimeouts: {unready: 0s}\n"

// The files of envoyproxy/ratelimit as they are: several domains, nested
// descriptors, bans, limits that are unlimited, on trial, or replace others; and
// a changed one comes into force.
func TestEnvoyFiles(t *testing.T) {
	r := run(t, map[string]string{
		"rls.yaml": head + "envoy_files: [config/*.yaml]\n",
		"config/edge.yaml": `
domain: edge
descriptors:
  - key: plan
    value: gold
    rate_limit: {unlimited: true}
  - key: plan
    value: banned
    rate_limit: {unit: second, requests_per_unit: 0}
  - key: message_type
    value: marketing
    descriptors:
      - key: to_number
        rate_limit: {unit: day, requests_per_unit: 2}
  - key: trial
    shadow_mode: true
    rate_limit: {unit: hour, requests_per_unit: 1}
  - key: read
    rate_limit: {name: read_limit, unit: Hour, requests_per_unit: 1}
  - key: path
    value: /big
    detailed_metric: true
    rate_limit:
      replaces:
        - name: read_limit
      unit: minute
      requests_per_unit: 3
`,
		"config/mail.yaml": "domain: mail\ndescriptors:\n  - key: user\n    rate_limit: {unit: year, requests_per_unit: 5}\n",
	})
	conn, err := grpc.NewClient(r.front, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	client := rls.NewRateLimitServiceClient(conn)
	ask := func(domain string, descriptors ...string) *rls.RateLimitResponse {
		t.Helper()
		req := &rls.RateLimitRequest{Domain: domain}
		for _, d := range descriptors {
			one := &ratelimit.RateLimitDescriptor{}
			for _, e := range strings.Split(d, ",") {
				key, value, _ := strings.Cut(e, "=")
				one.Entries = append(one.Entries, &ratelimit.RateLimitDescriptor_Entry{Key: key, Value: value})
			}
			req.Descriptors = append(req.Descriptors, one)
		}
		resp, err := client.ShouldRateLimit(t.Context(), req)
		require.NoError(t, err)
		return resp
	}
	const ok, over = rls.RateLimitResponse_OK, rls.RateLimitResponse_OVER_LIMIT
	require.Equal(t, ok, ask("edge", "plan=gold").OverallCode)
	banned := ask("edge", "plan=banned")
	require.Equal(t, over, banned.OverallCode)
	require.Equal(t, uint32(0), banned.Statuses[0].CurrentLimit.RequestsPerUnit)
	for want := range 2 {
		resp := ask("edge", "message_type=marketing,to_number=1")
		require.Equal(t, ok, resp.OverallCode)
		require.Equal(t, uint32(1-want), resp.Statuses[0].LimitRemaining)
		require.Equal(t, rls.RateLimitResponse_RateLimit_DAY, resp.Statuses[0].CurrentLimit.Unit)
	}
	require.Equal(t, over, ask("edge", "message_type=marketing,to_number=1").OverallCode)
	require.Equal(t, ok, ask("edge", "message_type=other,to_number=1").OverallCode)
	for range 3 {
		require.Equal(t, ok, ask("edge", "trial=1").OverallCode)
		require.Equal(t, ok, ask("edge", "read=ann", "path=/big").OverallCode, "replaced")
	}
	require.Equal(t, over, ask("edge", "read=ann", "path=/big").OverallCode)
	require.Equal(t, ok, ask("edge", "read=ann").OverallCode, "it was not charged")
	require.Equal(t, over, ask("edge", "read=ann", "path=/small").OverallCode)

	for range 5 {
		require.Equal(t, ok, ask("mail", "user=ann").OverallCode)
	}
	require.Equal(t, over, ask("mail", "user=ann").OverallCode)
	r.write("config/mail.yaml", "domain: mail\ndescriptors:\n  - key: user\n    rate_limit: {unit: year, requests_per_unit: 9}\n")
	require.Eventually(t, func() bool {
		return ask("mail", "user=bob").Statuses[0].CurrentLimit.RequestsPerUnit == 9
	}, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, ok, ask("mail", "user=ann").OverallCode)
	require.Contains(t, r.log.String(), "adjusted=1")
	r.write("config/mail.yaml", "domain: mail\ndescriptors:\n  - key: user\n    rate_limit: {unit: fortnight, requests_per_unit: 9}\n")
	require.Eventually(t, func() bool {
		return strings.Contains(r.log.String(), "mail.yaml:4:24: descriptors[0].rate_limit.unit: is")
	}, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, uint32(9), ask("mail", "user=bob").Statuses[0].CurrentLimit.RequestsPerUnit)

	resp, err := http.Get("http://" + r.back + "/metrics")
	require.NoError(t, err)
	metrics, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(metrics), `edge.path.-big.path_/big"`)
}

func TestMistakesInEnvoyFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "e.yaml: yaml: no documents",
		"descriptors: []":    "e.yaml:1:1: domain: is missing",
		"domain: d\nrate: 1": "e.yaml:2:1: rate: unknown field",
		"domain: d\ndescriptors: [{key: k, rate_limit: {unit: second}}]":                                        "wants unit and requests_per_unit, or unlimited",
		"domain: d\ndescriptors: [{key: k, rate_limit: {unit: second, requests_per_unit: 1, unlimited: true}}]": "has both unlimited and unit",
		"domain: d\ndescriptors: [{key: k}, {key: k}]":                                                          "is the same as that in line 2",
		"domain: own": `has the domain "own", as`,
		"domain: [":   "e.yaml:",
	} {
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "rls.yaml"), []byte("domains: [{name: own, descriptors: []}]\nenvoy_files: [e.yaml]\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "e.yaml"), []byte(text), 0o600))
		var errs strings.Builder
		require.Equal(t, 1, rateLimits.Run(t.Context(), []string{"-check", "-config", filepath.Join(folder, "rls.yaml")}, io.Discard, &errs, nil), text)
		require.Contains(t, errs.String(), want)
	}
}

func TestJSON(t *testing.T) {
	r := run(t, map[string]string{"rls.yaml": head + "domains: [{name: d, descriptors: [{key: a, limit: 1/h}]}]\n"})
	post := func(body string) (int, string) {
		resp, err := http.Post("http://"+r.back+"/json", "application/json", strings.NewReader(body))
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text)
	}
	const request = `{"domain":"d","descriptors":[{"entries":[{"key":"a","value":"1"}]}]}`
	status, body := post(request)
	require.Equal(t, 200, status)
	require.Regexp(t, `"overallCode": ?"OK"`, body)
	status, body = post(request)
	require.Equal(t, 429, status)
	require.Regexp(t, `"overallCode": ?"OVER_LIMIT"`, body)
	req, err := http.NewRequest(http.MethodPost, "http://"+r.back+"/json", strings.NewReader(request))
	require.NoError(t, err)
	req.Header.Set("Origin", "http://evil.example")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 403, resp.StatusCode, "a page of another origin")
	for _, body := range []string{"", "[]", `{"domain":""}`, `{"domain":"d","color":1}`} {
		status, _ = post(body)
		require.Equal(t, 400, status, body)
	}
}

// closed counts the connections that ended.
type closed struct {
	stats.Handler
	n chan struct{}
}

func (c closed) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (c closed) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (c closed) HandleRPC(context.Context, stats.RPCStats)                         {}
func (c closed) HandleConn(_ context.Context, s stats.ConnStats) {
	if _, ok := s.(*stats.ConnEnd); ok {
		c.n <- struct{}{}
	}
}

// Clients with a certificate of the authority are served over TLS, others are
// not; and a connection ends when it is old, without an error for a call.
func TestMutualTLSAndAge(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	require.NoError(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	pair := map[string]string{
		"rls.yaml": head + "tls: {certificate: FOLDER/c, key: FOLDER/k, client_ca: FOLDER/c}\ngrpc: {max_connection_age: 100ms, max_connection_age_grace: 5s}\ndomains: [{name: d, descriptors: [{key: a, limit: 1000/s}]}]\n",
		"c":        string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		"k":        string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
	}
	r := run(t, pair)
	ended := closed{n: make(chan struct{}, 100)}
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM([]byte(pair["c"])))
	ask := func(creds credentials.TransportCredentials, calls int) error {
		conn, err := grpc.NewClient(r.front, grpc.WithTransportCredentials(creds), grpc.WithStatsHandler(ended))
		require.NoError(t, err)
		defer conn.Close()
		for range calls {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			_, err = rls.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &rls.RateLimitRequest{
				Domain: "d", Descriptors: []*ratelimit.RateLimitDescriptor{{Entries: []*ratelimit.RateLimitDescriptor_Entry{{Key: "a", Value: "1"}}}},
			})
			cancel()
			if err != nil {
				return err
			}
			time.Sleep(20 * time.Millisecond)
		}
		return nil
	}
	require.Error(t, ask(credentials.NewClientTLSFromCert(roots, ""), 1), "no certificate")
	require.Error(t, ask(insecure.NewCredentials(), 1))
	for len(ended.n) > 0 {
		<-ended.n
	}
	require.NoError(t, ask(clientTLS(t, pair["c"], pair["k"], roots), 20))
	require.GreaterOrEqual(t, len(ended.n), 2, "of 400 ms, connections of 100 ms")
}

func clientTLS(t *testing.T, certificate, key string, roots *x509.CertPool) credentials.TransportCredentials {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	require.NoError(t, err)
	return credentials.NewTLS(&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}})
}
