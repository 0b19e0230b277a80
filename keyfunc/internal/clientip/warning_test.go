package clientip_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/internal/clientip"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// captured is the log output of f, with no warning logged before.
func captured(t *testing.T, f func()) string {
	var out bytes.Buffer
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	clientip.ResetWarnings()
	f()
	slog.SetDefault(before)
	return out.String()
}

// overHTTP takes the key of a request from a peer, with 203.0.113.7 in a header.
func overHTTP(key keyfunc.HTTP, peer, header string) {
	r := httptest.NewRequest(http.MethodGet, "http://example.com/", nil)
	r.RemoteAddr = peer
	r.Header.Set(header, "203.0.113.7")
	_, _ = key(r)
}

func overHTTPTimes(n int, key keyfunc.HTTP, peer, header, value string) {
	r := httptest.NewRequest(http.MethodGet, "http://example.com/", nil)
	r.RemoteAddr = peer
	r.Header.Set(header, value)
	for range n {
		_, _ = key(r)
	}
}

// overGRPC takes the key of a call with 203.0.113.7 in x-forwarded-for.
func overGRPC(key keyfunc.RPC) {
	ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:1"))})
	_, _ = key(metadata.NewIncomingContext(ctx, metadata.Pairs("x-forwarded-for", "203.0.113.7")), "/s/m")
}

func TestWarnings(t *testing.T) {
	const ignored, trustsAll = "code=keyfunc.forwarded_untrusted", "code=keyfunc.trusts_all"
	const absent, unreadable = "code=keyfunc.forwarded_elsewhere", "code=keyfunc.forwarded_unreadable"
	trusted := netip.MustParsePrefix("10.0.0.0/8")
	trustAll := func() { keyfunc.IPConfig{TrustAll: true}.HTTP() }
	for _, row := range []struct {
		name string
		do   func()
		want string // "" for silence
	}{
		{"header, nothing trusted", func() { overHTTP(keyfunc.ClientIP(), "192.0.2.1:1", "X-Forwarded-For") }, ignored},
		{"header, nothing trusted, Unix socket", func() { overHTTP(keyfunc.ClientIP(), "@", "X-Forwarded-For") }, ignored},
		{"metadata, nothing trusted", func() { overGRPC(rpckey.ClientIP()) }, ignored},
		{"X-Real-IP, nothing trusted", func() { overHTTPTimes(1000, keyfunc.ClientIP(), "192.0.2.1:1", "X-Real-IP", "203.0.113.7") }, ignored},
		{"Forwarded, nothing trusted", func() { overHTTPTimes(1000, keyfunc.ClientIP(), "192.0.2.1:1", "Forwarded", "203.0.113.7") }, ignored},
		{"CF-Connecting-IP, nothing trusted", func() { overHTTPTimes(1000, keyfunc.ClientIP(), "192.0.2.1:1", "CF-Connecting-IP", "203.0.113.7") }, ignored},
		{"True-Client-IP, nothing trusted", func() { overHTTPTimes(1000, keyfunc.ClientIP(), "192.0.2.1:1", "True-Client-IP", "203.0.113.7") }, ignored},
		{"Fastly-Client-IP, nothing trusted", func() { overHTTPTimes(1000, keyfunc.ClientIP(), "192.0.2.1:1", "Fastly-Client-IP", "203.0.113.7") }, ignored},
		{"Fly-Client-IP, nothing trusted", func() { overHTTPTimes(1000, keyfunc.ClientIP(), "192.0.2.1:1", "Fly-Client-IP", "203.0.113.7") }, ignored},
		{"X-Client-IP, nothing trusted", func() { overHTTPTimes(1000, keyfunc.ClientIP(), "192.0.2.1:1", "X-Client-IP", "203.0.113.7") }, ignored},
		{"X-Azure-ClientIP, nothing trusted", func() { overHTTPTimes(1000, keyfunc.ClientIP(), "192.0.2.1:1", "X-Azure-ClientIP", "203.0.113.7") }, ignored},
		{"X-Envoy-External-Address, nothing trusted", func() {
			overHTTPTimes(1000, keyfunc.ClientIP(), "192.0.2.1:1", "X-Envoy-External-Address", "203.0.113.7")
		}, ignored},
		{"CloudFront-Viewer-Address, nothing trusted", func() {
			overHTTPTimes(1000, keyfunc.ClientIP(), "192.0.2.1:1", "CloudFront-Viewer-Address", "203.0.113.7:1")
		}, ignored},
		{"X-Real-IP, a wrong prefix", func() {
			overHTTPTimes(1000, keyfunc.ClientIP(trusted), "192.0.2.1:1", "X-Real-IP", "203.0.113.7")
		}, ignored},
		{"CF-Connecting-IP, a trusted proxy", func() {
			overHTTPTimes(1000, keyfunc.ClientIP(trusted), "10.0.0.1:1", "CF-Connecting-IP", "203.0.113.7")
		}, absent},
		{"many times", func() {
			for range 100 {
				overHTTP(keyfunc.ClientIP(), "192.0.2.1:1", "X-Forwarded-For")
			}
		}, ignored},
		{"everything trusted", trustAll, trustsAll},
		{"everything trusted, many times", func() { trustAll(); trustAll() }, trustsAll},
		{"no header", func() { overHTTP(keyfunc.ClientIP(), "192.0.2.1:1", "Accept") }, ""},
		{"another header", func() {
			overHTTP(algo.Must(keyfunc.IPConfig{Header: "X-Real-IP"}.HTTP()), "192.0.2.1:1", "X-Forwarded-For")
		}, ""},
		{"something trusted", func() { overHTTP(keyfunc.ClientIP(trusted), "192.0.2.1:1", "X-Forwarded-For") }, ""},
		{"the peer alone", func() { overGRPC(rpckey.PeerIP()) }, ""},
		{"counted hops", func() { algo.Must(keyfunc.IPConfig{Hops: 1, TrustAll: true}.HTTP()) }, ""},
		{"construction", func() { keyfunc.ClientIP() }, ""},
		{"a wrong prefix", func() {
			overHTTPTimes(1000, keyfunc.ClientIP(trusted), "192.0.2.1:1", "X-Forwarded-For", "203.0.113.7")
		}, ignored},
		{"a wrong prefix over gRPC", func() {
			key := rpckey.ClientIP(trusted)
			for range 1000 {
				overGRPC(key)
			}
		}, ignored},
		{"a proxy of two is missing", func() {
			key := keyfunc.ClientIP(trusted)
			for range 1000 {
				overHTTP(key, "10.0.0.1:1", "X-Forwarded-For")
				overHTTPTimes(2, key, "192.0.2.1:1", "X-Forwarded-For", "203.0.113.7")
			}
		}, ignored},
		{"clients that invent the header", func() {
			key := keyfunc.ClientIP(trusted)
			for range 1000 {
				overHTTPTimes(2, key, "10.0.0.1:1", "X-Forwarded-For", "203.0.113.7")
				overHTTP(key, "192.0.2.1:1", "X-Forwarded-For")
			}
		}, ""},
		{"another header than the proxy's", func() {
			overHTTPTimes(1000, algo.Must(keyfunc.IPConfig{Header: "X-Real-IP", Trusted: []netip.Prefix{trusted}}.HTTP()), "10.0.0.1:1", "X-Forwarded-For", "203.0.113.7")
		}, absent},
		{"the proxy's health checks", func() { overHTTPTimes(1000, keyfunc.ClientIP(trusted), "10.0.0.1:1", "Accept", "*") }, ""},
		{"no addresses", func() {
			overHTTPTimes(1000, keyfunc.ClientIP(trusted), "10.0.0.1:1", "X-Forwarded-For", "client 203.0.113.7")
		}, unreadable},
		{"too many hops", func() {
			overHTTPTimes(1000, algo.Must(keyfunc.IPConfig{Hops: 2, TrustAll: true}.HTTP()), "10.0.0.1:1", "X-Forwarded-For", "203.0.113.7")
		}, unreadable},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := captured(t, row.do)
			if row.want == "" {
				require.Empty(t, out)
				return
			}
			require.Equal(t, 1, strings.Count(out, "\n"), out)
			require.Contains(t, out, row.want)
			require.NotContains(t, out, "203.0.113.7", "the log has nothing from the request")
		})
	}
}
