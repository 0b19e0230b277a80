package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-go/sluice/programs/gateway/config"
)

// newTransport is http.DefaultTransport with room for many connections to few
// hosts, the usual case of a gateway. It closes an idle connection before the upstream
// does (2 s and more by default): a POST that meets the end of one cannot be repeated.
func newTransport(t config.Timeouts, secure *tls.Config) *http.Transport {
	return &http.Transport{
		TLSClientConfig:       secure,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       t.UpIdle,
		TLSHandshakeTimeout:   5 * time.Second,
		ExpectContinueTimeout: time.Second,
		ResponseHeaderTimeout: t.Upstream,
		DisableCompression:    true, // without the client's request there is no compression to undo
	}
}

// transports are for HTTP/1.1 and HTTP/2 over TLS, and for HTTP/2 without it.
type transports struct{ usual, h2c *http.Transport }

func newTransports(f *config.File) (*transports, error) {
	secure, err := f.UpstreamTLS.Config()
	if err != nil {
		return nil, f.Errorf("upstream_tls", "%v", err)
	}
	t := &transports{newTransport(f.Timeouts, secure), newTransport(f.Timeouts, nil)}
	t.h2c.Protocols = new(http.Protocols)
	t.h2c.Protocols.SetUnencryptedHTTP2(true)
	return t, nil
}

// RoundTrip sends a request to its upstream.
func (t *transports) RoundTrip(r *http.Request) (*http.Response, error) {
	if is := requestOf(r); is != nil {
		defer func(begun time.Time) { is.Upstream = time.Since(begun) }(time.Now())
	}
	if r.URL.Scheme != "h2c" {
		return t.usual.RoundTrip(r)
	}
	r.URL.Scheme = "http" // r is the proxy's own copy
	return t.h2c.RoundTrip(r)
}

// CloseIdleConnections closes the idle connections of both.
func (t *transports) CloseIdleConnections() {
	t.usual.CloseIdleConnections()
	t.h2c.CloseIdleConnections()
}

// upstream is the bare proxy of a route.
func (g *Gateway) upstream(r *config.Route, trusted []netip.Prefix) *httputil.ReverseProxy {
	byQuery := slices.ContainsFunc(r.Limits, func(l *config.Limit) bool { return config.HasKind(l.Keys, "query") })
	return &httputil.ReverseProxy{
		Transport:    g.transport,
		BufferPool:   buffers{},
		ErrorHandler: g.failed,
		Rewrite: func(pr *httputil.ProxyRequest) {
			restorePath(pr)
			restoreMethod(pr)
			if !byQuery { // else without parameters that this server cannot parse but the upstream might
				pr.Out.URL.RawQuery = pr.In.URL.RawQuery
			}
			pr.SetURL(r.Upstream)
			if r.PreserveHost {
				pr.Out.Host = pr.In.Host
			}
			forward(pr, trusted)
		},
	}
}

// proxyHeaders are headers in which proxies describe the client and its request,
// besides X-Forwarded-*, and in which a client chooses another method. ReverseProxy
// drops Forwarded by itself.
var proxyHeaders = map[string]bool{
	"x-real-ip": true, "x-client-ip": true, "x-cluster-client-ip": true, "true-client-ip": true, "cf-connecting-ip": true,
	"cf-connecting-ipv6": true, "fastly-client-ip": true, "fly-client-ip": true, "cloudfront-viewer-address": true,
	"client-ip": true, "x-originating-ip": true, "x-appengine-user-ip": true, "x-proxyuser-ip": true,
	"x-azure-clientip": true, "x-azure-socketip": true, "eo-connecting-ip": true, "ali-cdn-real-ip": true,
	"x-envoy-external-address": true, "x-original-forwarded-for": true, "x-original-url": true, "x-rewrite-url": true,
	"x-http-method-override": true, "x-http-method": true, "x-method-override": true,
}

// isProxyHeader knows names with an underscore too, which servers of CGI and its heirs
// cannot tell from a hyphen.
func isProxyHeader(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	return proxyHeaders[name] || strings.HasPrefix(name, "x-forwarded-")
}

// forward names the client for the upstream. The headers of a trusted proxy
// are kept, and its address is appended; other clients' headers are dropped.
func forward(pr *httputil.ProxyRequest, trusted []netip.Prefix) {
	if !isTrusted(pr.In.RemoteAddr, trusted) {
		for name := range pr.Out.Header {
			if isProxyHeader(name) {
				delete(pr.Out.Header, name)
			}
		}
		pr.SetXForwarded()
		return
	}
	pr.Out.Header["X-Forwarded-For"] = pr.In.Header["X-Forwarded-For"]
	pr.SetXForwarded()
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
		if said := pr.In.Header.Get(name); said != "" {
			pr.Out.Header.Set(name, said)
		}
	}
}

func isTrusted(remote string, trusted []netip.Prefix) bool {
	if len(trusted) == 0 {
		return false
	}
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	peer := at.Addr().Unmap().WithZone("")
	for _, p := range trusted {
		if p.Masked().Contains(peer) {
			return true
		}
	}
	return false
}

// statusClientGone is for the access log: the client takes no answer any more. nginx has
// the same number.
const statusClientGone = 499

// faultOfClient is the status of a request that the client did not bring to its end,
// 0 if it did. It is none for which the charge is given back by default.
func faultOfClient(r *http.Request) int {
	body := bodyOf(r)
	switch {
	case body != nil && body.expired.Load():
		return http.StatusRequestTimeout
	case body != nil && body.broken.Load():
		return http.StatusBadRequest
	case r.Context().Err() != nil:
		return statusClientGone
	}
	return 0
}

// failed answers for an upstream that does not. The reason goes to the log, a
// few in a second at most, and not to the client.
func (g *Gateway) failed(w http.ResponseWriter, r *http.Request, err error) {
	if status := faultOfClient(r); status != 0 {
		w.Header().Set("Connection", "close")
		http.Error(w, http.StatusText(status), status)
		return
	}
	status := http.StatusBadGateway
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		status = http.StatusGatewayTimeout
	}
	if g.failures.Allow("", 1) {
		g.opts.Log.Warn("upstream failed", "route", r.Pattern, "status", status, "error", err)
	}
	http.Error(w, http.StatusText(status), status)
}

// buffers lends the buffers for copies of bodies.
type buffers struct{}

var pool = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func (buffers) Get() []byte { return pool.Get().(*[32 << 10]byte)[:] }

func (buffers) Put(b []byte) { pool.Put((*[32 << 10]byte)(b)) }
