package guides_test

import (
	"fmt"
	"net/http/httptest"
	"net/netip"

	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

func Example_proxies() {
	balancer := netip.MustParsePrefix("10.0.7.0/24")
	key := keyfunc.ClientIP(balancer)

	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.0.7.12:4711"
	r.Header.Set("X-Forwarded-For", "192.0.2.66, 203.0.113.7")
	fmt.Println(key(r))
	// Output: 203.0.113.7 <nil>
}

// Everything else: another header, counted hops, Unix sockets, the same for gRPC.
func Example_proxyConfig() {
	config := keyfunc.IPConfig{
		Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.7.0/24")},
		Header:  "X-Real-IP",
	}
	key, err := config.HTTP()
	callKey, err2 := rpckey.FromConfig(config)

	fmt.Println(key != nil, callKey != nil, err, err2)
	// Output: true true <nil> <nil>
}
