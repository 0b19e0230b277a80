package guides_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// auth is the authentication of a gRPC server.
var auth = []grpc.ServerOption{grpc.ChainUnaryInterceptor(authInterceptor), grpc.ChainStreamInterceptor(
	func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		_, err := authInterceptor(stream.Context(), nil, nil, func(ctx context.Context, _ any) (any, error) {
			return nil, next(srv, &streamOf{stream, ctx})
		})
		return err
	})}

// streamOf is a stream with another context.
type streamOf struct {
	grpc.ServerStream
	ctx context.Context
}

// Context is part of grpc.ServerStream.
func (s *streamOf) Context() context.Context { return s.ctx }

// gets are the statuses of n requests.
func gets(h http.Handler, apiKey string, n int) (statuses []int) {
	for range n {
		statuses = append(statuses, get(h, "/", apiKey).Code)
	}
	return statuses
}

// calls are the codes of a call with each of the keys.
func calls(server *grpc.Server, apiKeys ...string) (all []codes.Code) {
	client, stop := serve(server)
	defer stop()
	for _, apiKey := range apiKeys {
		ctx := metadata.AppendToOutgoingContext(context.Background(), "api-key", apiKey, "account", apiKey)
		_, err := client.EmptyCall(ctx, &testpb.Empty{})
		all = append(all, status.Code(err))
	}
	return all
}

// mux is the service.
var mux = ok

func Example_perAddress() {
	proxies := netip.MustParsePrefix("10.0.7.0/24") // your own ones, and no others
	addresses := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20)))
	handler := httpmw.Limit(addresses, keyfunc.ClientIP(proxies), httpmw.WithName("address"))(mux)
	server := grpc.NewServer(grpcmw.ServerOptions(addresses, rpckey.ClientIP(proxies), grpcmw.WithName("address"))...)

	fmt.Println(gets(handler, "", 1), calls(server, ""))
	// Output: [200] [OK]
}

// Who has a subnet has many addresses.
func Example_perSubnet() {
	proxies := netip.MustParsePrefix("10.0.7.0/24")
	addresses := algo.Must(algo.NewTokenBucket(algo.PerHour(10), algo.Burst(20)))

	subnets := algo.Must(algo.NewTokenBucket(algo.PerSecond(100), algo.Burst(200)))
	subnet := keyfunc.IPConfig{Trusted: []netip.Prefix{proxies}, IPv4Bits: 24, IPv6Bits: 48}
	handler := httpmw.Limits([]httpmw.Policy{
		{Name: "address", Limiter: addresses, Key: keyfunc.ClientIP(proxies)},
		{Name: "subnet", Limiter: subnets, Key: algo.Must(subnet.HTTP())},
	})(mux)

	fmt.Println(get(handler, "/", "").Header().Get("RateLimit"))
	// Output: "address";r=19;t=360, "subnet";r=199;t=1
}

// The office is not limited, whatever others write into a header.
func Example_perAddressExempt() {
	proxies := netip.MustParsePrefix("10.0.7.0/24")
	addresses := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))

	office := netip.MustParsePrefix("192.0.2.0/24")
	config := keyfunc.IPConfig{Trusted: []netip.Prefix{proxies}}
	handler := httpmw.Limit(addresses, keyfunc.ClientIP(proxies), httpmw.WithSkip(algo.Must(config.Within(office))))(mux)
	skip := grpcmw.WithSkip(algo.Must(rpckey.Within(config, office)))
	server := grpc.NewServer(grpcmw.ServerOptions(addresses, rpckey.ClientIP(proxies), skip)...)

	for _, client := range [][2]string{{"192.0.2.7:1", ""}, {"10.0.7.1:1", "192.0.2.7"}, {"198.51.100.1:1", "192.0.2.7"}} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = client[0]
		r.Header.Set("X-Forwarded-For", client[1])
		var got []int
		for range 2 {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			got = append(got, w.Code)
		}
		fmt.Println(got)
	}
	fmt.Println(calls(server, ""))
	// Output:
	// [200 200]
	// [200 200]
	// [200 429]
	// [OK]
}

func Example_perUser() {
	users := algo.Must(algo.NewTokenBucket(algo.PerMinute(60), algo.Burst(2)))
	limit := httpmw.Limit(users, keyfunc.Context(userOf),
		httpmw.WithName("user"), httpmw.WithMissingKey(http.StatusUnauthorized))
	handler := authenticate(limit(mux))
	server := grpc.NewServer(append(auth, grpcmw.ServerOptions(users, rpckey.Context(userOf),
		grpcmw.WithName("user"), grpcmw.WithMissingKey(codes.Unauthenticated))...)...)

	fmt.Println(gets(handler, "key-a", 3), gets(handler, "", 1), calls(server, "key-b", "key-b", "key-b", ""))
	// Output: [200 200 429] [401] [OK OK ResourceExhausted Unauthenticated]
}

func Example_perPlan() {
	free := algo.Must(algo.NewTokenBucket(algo.PerMinute(60), algo.Burst(1)))
	pro := algo.Must(algo.NewTokenBucket(algo.PerMinute(6000)))

	plans := httpmw.NewPlans(keyfunc.Context(planOf), map[string][]httpmw.Policy{
		"free": {{Name: "free", Limiter: free, Key: keyfunc.Context(userOf)}},
		"pro":  {{Name: "pro", Limiter: pro, Key: keyfunc.Context(userOf)}},
	})
	handler := authenticate(plans.Limit(mux))

	callPlans := grpcmw.NewPlans(rpckey.Context(planOf), map[string][]grpcmw.Policy{
		"free": {{Name: "free", Limiter: free, Key: rpckey.Context(userOf)}},
		"pro":  {{Name: "pro", Limiter: pro, Key: rpckey.Context(userOf)}},
	})
	server := grpc.NewServer(append(auth, callPlans.ServerOptions()...)...)

	fmt.Println(gets(handler, "key-a", 2), gets(handler, "key-b", 2), calls(server, "key-a", "key-a", "key-c", "key-c"))
	// Output: [200 200] [200 429] [OK OK OK ResourceExhausted]
}

func Example_oneUserMore() {
	standard := algo.Must(algo.NewTokenBucket(algo.PerMinute(1)))
	large := algo.Must(algo.NewTokenBucket(algo.PerMinute(1000)))

	of := map[string]algo.Limiter{keyfunc.Identity("alice"): large, keyfunc.Identity("bob"): algo.DenyAll()}
	perUser := algo.ByKey(func(_ context.Context, user string) algo.Limiter {
		if own := of[user]; own != nil {
			return own
		}
		return standard
	})
	handler := authenticate(httpmw.Limit(perUser, keyfunc.Context(userOf), httpmw.WithName("user"))(mux))
	server := grpc.NewServer(append(auth, grpcmw.ServerOptions(perUser, rpckey.Context(userOf), grpcmw.WithName("user"))...)...)

	fmt.Println(gets(handler, "key-a", 2), gets(handler, "key-b", 1), calls(server, "key-a", "key-a", "key-c", "key-c"))
	// Output: [200 200] [429] [OK OK OK ResourceExhausted]
}

func Example_tokensAndMoney() {
	const perToken = 30
	price := func(r *http.Request) int64 { return perToken * estimate(r) }
	tokens := algo.Must(algo.NewTokenBucket(algo.PerMinute(10_000)))
	budget := algo.Must(algo.NewFixedWindow(algo.PerDay(500_000))) // 5.00 a day, in thousandths of a cent

	limit := httpmw.Limits([]httpmw.Policy{
		{Name: "tokens", Limiter: tokens, Key: keyfunc.Context(userOf), Cost: estimate},
		{Name: "budget", Limiter: budget, Key: keyfunc.Context(userOf), Cost: price},
	}, httpmw.WithLeaseInContext())
	complete := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		used := int64(700) // known when the work is done
		algo.LeaseFrom(r.Context(), "tokens").Settle(used)
		algo.LeaseFrom(r.Context(), "budget").Settle(used * perToken)
	})

	estimateCall := func(context.Context, string, any) int64 { return 2000 }
	priceCall := func(context.Context, string, any) int64 { return 2000 * perToken }
	server := grpc.NewServer(append(auth, grpcmw.Limits([]grpcmw.Policy{
		{Name: "tokens", Limiter: tokens, Key: rpckey.Context(userOf), Cost: estimateCall},
		{Name: "budget", Limiter: budget, Key: rpckey.Context(userOf), Cost: priceCall},
	}, grpcmw.WithLeaseInContext())...)...) // algo.LeaseFrom(ctx, "tokens").Settle(used)

	handler := authenticate(limit(complete))
	get(handler, "/", "key-a")
	alice := keyfunc.Identity("alice")
	left := algo.Must(algo.Peek(context.Background(), budget, alice, 1)).Remaining
	fmt.Println(left, calls(server, "key-a", "key-a", "key-a", "key-a", "key-a"))
	// Output: 479000 [OK OK OK OK ResourceExhausted]
}

func Example_connections() {
	connections := algo.Must(adaptive.PerKey(5))
	opens := algo.Must(algo.NewTokenBucket(algo.PerMinute(60), algo.Burst(10)))

	limit := httpmw.Limits([]httpmw.Policy{ // a connection holds its slot until it ends, hijacked or not
		{Name: "connections", Limiter: connections, Key: keyfunc.Context(userOf)},
		{Name: "opens", Limiter: opens, Key: keyfunc.Context(userOf)},
	})

	var handler http.Handler
	handler = authenticate(limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(get(handler, "/", "key-a").Code) // one more connection, while this one is open
		fmt.Print(connections.InFlight(keyfunc.Identity("alice")), " ")
	})))
	fmt.Println(get(handler, "/", "key-a").Code, connections.InFlight(keyfunc.Identity("alice")))
	// Output: 5 4 3 2 1 429 0
}
