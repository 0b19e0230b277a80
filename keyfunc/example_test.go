package keyfunc_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

// get is a request from 10.0.0.1, with one header.
func get(name, value string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://example.com/items/17", nil)
	r.RemoteAddr = "10.0.0.1:4711"
	r.Header.Set(name, value)
	return r
}

func ExampleClientIP() {
	key := keyfunc.ClientIP(netip.MustParsePrefix("10.0.0.0/8"))
	// The client has sent 192.0.2.66 itself, the proxy has added 203.0.113.7.
	fmt.Println(key(get("X-Forwarded-For", "192.0.2.66, 203.0.113.7")))
	// Output: 203.0.113.7 <nil>
}

func ExampleClientIP_direct() {
	key := keyfunc.ClientIP()
	fmt.Println(key(get("X-Forwarded-For", "192.0.2.66")))
	// Output: 10.0.0.1 <nil>
}

func ExampleIPConfig_forwarded() {
	key := algo.Must(keyfunc.IPConfig{Header: "Forwarded", Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}.HTTP())
	fmt.Println(key(get("Forwarded", `for=192.0.2.66, for="[2001:db8:1:2::3]:4711";proto=https`)))
	// Output: 2001:db8:1:2::/64 <nil>
}

func ExampleIPConfig_hops() {
	key := algo.Must(keyfunc.IPConfig{Hops: 2, TrustAll: true}.HTTP())
	fmt.Println(key(get("X-Forwarded-For", "192.0.2.66, 203.0.113.7, 198.51.100.2")))
	// Output: 203.0.113.7 <nil>
}

// The address limits requests without a user.
func ExampleOr() {
	key := keyfunc.Or(keyfunc.Header("X-User"), keyfunc.ClientIP())
	fmt.Println(key(get("X-User", "alice")))
	fmt.Println(key(get("Accept", "*/*")))
	// Output:
	// alice <nil>
	// 10.0.0.1 <nil>
}

func ExampleIPConfig_HTTP() {
	key, err := keyfunc.IPConfig{
		Trusted:  []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Header:   "X-Real-IP",
		IPv6Bits: 56,
	}.HTTP()
	if err != nil {
		panic(err)
	}
	fmt.Println(key(get("X-Real-IP", "2001:db8:1:2345::6")))

	_, err = keyfunc.IPConfig{IPv6Bits: 16}.HTTP()
	fmt.Println(err)
	// Output:
	// 2001:db8:1:2300::/56 <nil>
	// keyfunc: IPConfig.IPv6Bits is 16: want 32 to 128, or 0 for 64
}

func ExampleHash() {
	first, _ := keyfunc.ClientIP()(get("Accept", "*/*"))
	second, _ := keyfunc.ClientIP()(get("Accept", "text/html"))
	fmt.Println(keyfunc.Hash(first) == keyfunc.Hash(second), keyfunc.Hash(""))
	// Output: true 0
}

func ExampleGlobal() {
	key, err := keyfunc.Global()(get("X-User", "alice"))
	fmt.Printf("%q %v\n", key, err)
	// Output: "" <nil>
}

func ExampleHeader() {
	key := keyfunc.Header("X-User")
	fmt.Println(key(get("X-User", "alice")))
	fmt.Println(key(get("X-User", "203.0.113.7")))
	_, err := key(get("X-Other", "alice"))
	fmt.Println(errors.Is(err, keyfunc.ErrNoKey))
	// Output:
	// alice <nil>
	// ~value:203.0.113.7 <nil>
	// true
}

func ExampleSecret() {
	key := keyfunc.Secret("Authorization", []byte("16 random bytes."))
	a, _ := key(get("Authorization", "Bearer sk-live-1"))
	b, _ := key(get("Authorization", "bearer  sk-live-1"))
	fmt.Println(len(a), a == b)
	// Output: 40 true
}

func ExampleBasicUser() {
	r := get("X-User", "bob")
	r.SetBasicAuth("alice", "opensesame")
	fmt.Println(keyfunc.BasicUser()(r))
	// Output: alice <nil>
}

func ExampleHost() {
	key := keyfunc.Host("example.com", "api.example.com")
	r := get("X-User", "alice")
	r.Host = "API.example.com:8443"
	fmt.Println(key(r))
	r.Host = "made-up.example"
	_, err := key(r)
	fmt.Println(err)
	// Output:
	// api.example.com <nil>
	// keyfunc: no key: the host is not in the list of allowed hosts
}

// tenant is the type of a context key.
type tenant struct{}

func ExampleContext() {
	key := keyfunc.Context(func(ctx context.Context) (string, bool) {
		name, ok := ctx.Value(tenant{}).(string)
		return name, ok
	})
	r := get("X-User", "bob")
	fmt.Println(key(r.WithContext(context.WithValue(r.Context(), tenant{}, "acme"))))
	// Output: acme <nil>
}

func ExampleRoute() {
	key := keyfunc.Route()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /items/{id}", func(_ http.ResponseWriter, r *http.Request) { fmt.Println(key(r)) })
	mux.ServeHTTP(httptest.NewRecorder(), get("X-User", "alice"))
	// Output: GET /items/{id} <nil>
}

func ExamplePattern() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /items/{id}", func(http.ResponseWriter, *http.Request) {})
	key := keyfunc.Pattern(mux)
	fmt.Println(key(get("X-User", "alice")))
	fmt.Println(key(httptest.NewRequest(http.MethodGet, "/made/up", nil)))
	// Output:
	// GET /items/{id} <nil>
	// ~unmatched <nil>
}

func ExampleJoin() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /items/{id}", func(http.ResponseWriter, *http.Request) {})
	key := keyfunc.Join(keyfunc.Header("X-User"), keyfunc.Pattern(mux))
	fmt.Println(key(get("X-User", "alice")))
	// Output: ~join/5:alice/15:GET /items/{id} <nil>
}

// service is the certificate of a client, as crypto/tls hands it over.
var service = tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{
	{URIs: []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/billing"}}},
}}}

func ExampleClientCert() {
	r := get("X-User", "bob")
	r.TLS = &service
	fmt.Println(keyfunc.ClientCert()(r))
	// Output: spiffe://example.org/billing <nil>
}

// The key of a user, for code that resets or bans it.
func ExampleIdentity() {
	fmt.Println(keyfunc.Identity("acme/alice"))
	fmt.Println(keyfunc.Identity("203.0.113.7")) // a user with the name of an address
	// Output:
	// acme/alice
	// ~value:203.0.113.7
}

// The key of a user on one route, as Join(Context(user), Route()) makes it.
func ExampleJoinKeys() {
	fmt.Println(keyfunc.JoinKeys(keyfunc.Identity("alice"), "GET /items/{id}"))
	// Output:
	// ~join/5:alice/15:GET /items/{id}
}

// All instances of a service log a caller by one hash, which cannot be computed
// without the pepper.
func ExampleSetHashPepper() {
	keyfunc.SetHashPepper([]byte("16 random bytes or more")) // from the environment or a file
	defer keyfunc.ForgetHashPepper()                         // in tests only

	fmt.Printf("%016x\n", keyfunc.Hash("alice"))
	// Output: ae265f22be9261c5
}

// The balancer's own checks, and clients of one network, are not limited.
func ExampleIPConfig_Within() {
	config := keyfunc.IPConfig{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}}
	exempt, err := config.Within(netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("10.0.0.1/32"))
	fmt.Println(err)
	for _, forwarded := range []string{"", "192.0.2.7", "203.0.113.9", "192.0.2.7, 203.0.113.9"} {
		r := get("X-Forwarded-For", forwarded)
		if forwarded == "" {
			r.Header.Del("X-Forwarded-For")
		}
		fmt.Println(exempt(r)) // in httpmw.WithSkip(exempt)
	}
	// Output:
	// <nil>
	// true
	// true
	// false
	// false
}
