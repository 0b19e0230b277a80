package guides_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// A limit for the tenant, a smaller one for each of its users, and one for the
// work of a tenant in flight, in one decision.
func Example_tenants() {
	perTenant := algo.Must(algo.NewTokenBucket(algo.PerMinute(3)))
	perUser := algo.Must(algo.NewTokenBucket(algo.PerMinute(2)))
	tenantInFlight := algo.Must(adaptive.PerKey(100))

	limit := httpmw.Limits([]httpmw.Policy{
		{Name: "user", Limiter: perUser, Key: keyfunc.Context(userOf)},
		{Name: "tenant", Limiter: perTenant, Key: keyfunc.Context(tenantOf)},
		{Name: "tenant-in-flight", Limiter: tenantInFlight, Key: keyfunc.Context(tenantOf)},
	}, httpmw.WithMissingKey(http.StatusUnauthorized))

	handler := authenticate(limit(ok))
	for _, key := range []string{"key-a", "key-a", "key-a", "key-b", "key-b", "key-c"} {
		fmt.Println(key, get(handler, "/", key).Code)
	}
	// Output:
	// key-a 200
	// key-a 200
	// key-a 429
	// key-b 200
	// key-b 429
	// key-c 200
}

// Under overload, each tenant gets the lesser of its demand and its share.
func Example_fairShares() {
	capacity := algo.Must(adaptive.New(adaptive.Default(), adaptive.WithFairShares(func(tenant string) float64 {
		if tenant == "acme" {
			return 4
		}
		return 1
	})))
	handler := authenticate(httpmw.Limit(capacity, keyfunc.Context(tenantOf), httpmw.WithName("capacity"))(ok))

	fmt.Println(get(handler, "/", "key-a").Code, capacity.Explain().Denied.Share)
	// Output: 200 0
}

// Slots by the tenant's plan.
func Example_tenantSlots() {
	inFlight := algo.Must(adaptive.PerKey(10, adaptive.WithLimitOf(func(ctx context.Context, _ string) int {
		if plan, _ := planOf(ctx); plan == "pro" {
			return 50
		}
		return -1 // the common limit; 0 denies the key
	})))

	fmt.Println(inFlight.Len())
	// Output: 0
}
