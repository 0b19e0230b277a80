package httpmw_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// A name that no policy around a request has is a mistake, and logged once. A request that lacks
// a policy on purpose is not logged.
func TestUnknownPolicy(t *testing.T) {
	policy := func(name string) httpmw.Policy {
		return httpmw.Policy{Name: name, Limiter: bucket(t, algo.PerHour(100)), Key: key("k")}
	}
	plans := func(opts ...httpmw.Option) *httpmw.Plans {
		return httpmw.NewPlans(keyfunc.Header("Plan"), map[string][]httpmw.Policy{
			"": {policy("requests")}, "pro": {policy("requests"), policy("tokens")},
		}, opts...)
	}
	skip := httpmw.WithSkip(func(*http.Request) bool { return true })
	kept := httpmw.WithLeaseInContext()
	outer := httpmw.Limit(bucket(t, algo.PerHour(100)), key("k"), httpmw.WithName("outer"), kept)
	keyless := policy("tokens")
	keyless.Key = keyfunc.Header("User")
	replaced := plans(kept)
	require.NoError(t, replaced.Set(map[string][]httpmw.Policy{"": {policy("requests")}}))
	for name, row := range map[string]struct {
		wrap func(http.Handler) http.Handler
		asks string
		logs int
	}{
		"a typo":                     {httpmw.Limits([]httpmw.Policy{policy("requests"), policy("tokens")}, kept), "token", 1},
		"one limit, a typo":          {outer, "tokens", 1},
		"of two middlewares":         {func(h http.Handler) http.Handler { return outer(plans(kept).Limit(h)) }, "token", 1},
		"the name is right":          {httpmw.Limits([]httpmw.Policy{policy("requests"), policy("tokens")}, kept), "tokens", 0},
		"no middleware":              {func(h http.Handler) http.Handler { return h }, "tokens", 0},
		"of another plan":            {plans(kept).Limit, "tokens", 0},
		"of no plan":                 {plans(kept).Limit, "token", 1},
		"of a plan before":           {replaced.Limit, "tokens", 0},
		"skipped":                    {plans(kept, skip).Limit, "tokens", 0},
		"skipped within another":     {func(h http.Handler) http.Handler { return outer(plans(kept, skip).Limit(h)) }, "tokens", 0},
		"without the option within":  {func(h http.Handler) http.Handler { return outer(plans().Limit(h)) }, "tokens", 1},
		"without the option":         {plans().Limit, "requests", 1},
		"skipped without the option": {plans(skip).Limit, "tokens", 0},
		"left out without its key":   {httpmw.Limits([]httpmw.Policy{policy("requests"), keyless}, kept, httpmw.WithMissingKey(httpmw.Skip)), "tokens", 0},
	} {
		t.Run(name, func(t *testing.T) {
			for i, ask := range []func(*http.Request){
				func(r *http.Request) { algo.LeaseFrom(r.Context(), row.asks).Settle(3) },
				func(r *http.Request) { meter.From(r.Context(), row.asks, 1).Close() },
			} {
				if i == 1 && name == "without the option" {
					continue // logs algo.meter_without_lease
				}
				h := row.wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { ask(r) }))
				says := logged(t, func() {
					for range 3 {
						h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
					}
				})
				require.Equal(t, row.logs, strings.Count(says, "code=algo.unknown_policy policy="+row.asks+"\n"), says)
			}
		})
	}
}
