package meter_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

type planKey struct{}

// TestLaterChargesGoWhereTheFirstWent: blocks are charged to the limiter that was chosen for the
// request, although the context of the blocks would choose another.
func TestLaterChargesGoWhereTheFirstWent(t *testing.T) {
	free, pro := bucket(algo.PerHour(10)), bucket(algo.PerHour(100))
	byPlan := algo.ByKey(func(ctx context.Context, _ string) algo.Limiter {
		if ctx.Value(planKey{}) == "pro" {
			return pro
		}
		return free
	})
	for name, limit := range map[string]func(http.Handler) http.Handler{
		"one": httpmw.Limit(byPlan, keyfunc.Global(), httpmw.WithName("tokens"), httpmw.WithLeaseInContext()),
		"of several": httpmw.Limits([]httpmw.Policy{{Name: "requests", Limiter: bucket(algo.PerHour(9)), Key: keyfunc.Global()},
			{Name: "tokens", Limiter: byPlan, Key: keyfunc.Global()}}, httpmw.WithLeaseInContext()),
	} {
		before := peek(t, pro, "").Remaining
		limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			require.Same(t, pro, algo.LimiterFrom(r.Context(), "tokens"))
			m := meter.From(r.Context(), "tokens", 5)
			defer m.Close()
			d, err := m.Reserve(context.Background(), 20)
			require.NoError(t, err)
			require.True(t, d.Allowed)
			m.Use(20)
		})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil).WithContext(context.WithValue(t.Context(), planKey{}, "pro")))
		require.EqualValues(t, before-20, peek(t, pro, "").Remaining, name)
		require.EqualValues(t, 10, peek(t, free, "").Remaining, name)
	}
	require.Nil(t, algo.LimiterFrom(t.Context(), "tokens"))
}

// The middleware reserves an estimate, the handler charges what it uses.
func ExampleFrom() {
	tokens := bucket(algo.PerHour(100))
	limit := httpmw.Limit(tokens, keyfunc.Global(), httpmw.WithName("tokens"), httpmw.WithLeaseInContext(),
		httpmw.WithCost(func(*http.Request) int64 { return 40 }))
	handler := limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		m := meter.From(r.Context(), "tokens", 10)
		defer m.Close()
		for range 5 {
			if d, err := m.Reserve(r.Context(), 12); err != nil || !d.Allowed {
				return
			}
			m.Use(12)
		}
	}))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	d, _ := algo.Peek(context.Background(), tokens, "", 0)
	fmt.Println(d.Remaining)
	// Output: 40
}
