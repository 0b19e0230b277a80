package keyfunc_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
)

// served is a request as net/http hands it over, with the address of the
// listener in its context.
func served(peer, header string, lines ...string) *http.Request {
	r := request(peer, header, lines...)
	ctx := context.WithValue(r.Context(), http.ServerContextKey, &http.Server{})
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, net.Addr(tcp("192.0.2.80:443")))
	return r.WithContext(ctx)
}

// work is a named request to a key function, for counting and timing.
type work struct {
	name   string
	key    keyfunc.HTTP
	r      *http.Request
	allocs float64
}

func works() []work {
	trusting := keyfunc.ClientIP(ours...)
	routed := request("203.0.113.7:4711", xff)
	routed.Pattern = "GET /items/{id}"
	login := request("203.0.113.7:4711", xff)
	login.SetBasicAuth("alice", "secret")
	return []work{
		{"ClientIP/IPv4", keyfunc.ClientIP(), served("203.0.113.7:4711", xff), 0},
		{"ClientIP/IPv4-untrusted-peer", trusting, served("203.0.113.7:4711", xff, "198.51.100.1"), 0},
		{"ClientIP/IPv4-one-proxy", trusting, served("10.0.0.1:4711", xff, "203.0.113.7"), 0},
		{"ClientIP/IPv4-long-chain", trusting, served("10.0.0.1:4711", xff, strings.Repeat("198.51.100.1, ", 100)+"203.0.113.7, 10.0.0.2, 10.0.0.3"), 0},
		{"ClientIP/IPv6", keyfunc.ClientIP(), served("[2001:db8::1]:4711", xff), 0},
		{"ClientIP/IPv6-one-proxy", trusting, served("10.0.0.1:4711", xff, "2001:db8::1"), 0},
		{"Forwarded/IPv4", behind("Forwarded", ours...), served("10.0.0.1:4711", "Forwarded", `for=203.0.113.7;proto=https, for="[2001:db8:aaaa::2]:80"`), 0},
		{"Header/plain", keyfunc.Header("X-User"), request("203.0.113.7:4711", "X-User", "alice"), 0},
		{"Header/absent", keyfunc.Header("X-User"), request("203.0.113.7:4711", xff), 0},
		{"Host", keyfunc.Host("example.com"), served("203.0.113.7:4711", xff), 0},
		{"Route", keyfunc.Route(), routed, 0},
		{"Secret", keyfunc.Secret("X-API-Key", []byte("0123456789abcdef")), request("203.0.113.7:4711", "X-Api-Key", "sk-live-0123456789"), 1},
		{"Join/address-route", keyfunc.Join(keyfunc.ClientIP(), keyfunc.Route()), routed, 1},
	}
}

func TestAllocations(t *testing.T) {
	for _, w := range works() {
		t.Run(w.name, func(t *testing.T) {
			// The fewest of several runs: with the race detector, sync.Pool
			// loses some of its objects.
			allocs := testing.AllocsPerRun(100, func() { w.key(w.r) })
			for range 50 {
				allocs = min(allocs, testing.AllocsPerRun(1, func() { w.key(w.r) }))
			}
			require.LessOrEqual(t, allocs, w.allocs)
		})
	}
}

// An IPv4 client costs no allocation even if it has never been seen.
func TestNewIPv4ClientsDoNotAllocate(t *testing.T) {
	var requests []*http.Request
	for i := range 2000 {
		ip := net.IPv4(203, 0, byte(i>>8), byte(i)).String()
		requests = append(requests, served(net.JoinHostPort(ip, "4711"), xff))
	}
	key, i := keyfunc.ClientIP(), 0
	require.Zero(t, testing.AllocsPerRun(1999, func() { key(requests[i]); i++ }))
}

// The body is not touched by any key function.
func TestBodyIsNeverRead(t *testing.T) {
	for _, w := range works() {
		w.r.Body = untouchable{t}
		_, _ = w.key(w.r)
	}
	for _, key := range []keyfunc.HTTP{keyfunc.Global(), keyfunc.BasicUser(), keyfunc.ClientCert(), keyfunc.Pattern(http.NewServeMux())} {
		r := request("203.0.113.7:1", xff)
		r.Method, r.Body = http.MethodPost, untouchable{t}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		_, _ = key(r)
	}
}

// untouchable is a body that fails the test when it is used.
type untouchable struct{ t *testing.T }

func (u untouchable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, nil
}

func (u untouchable) Close() error {
	u.t.Error("the body was closed")
	return nil
}
