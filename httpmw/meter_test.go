package httpmw_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/httpmw"
)

func remaining(t *testing.T, l algo.Limiter, key string) int64 {
	lease, err := l.Acquire(context.Background(), key, 0)
	require.NoError(t, err)
	return lease.Remaining
}

// A response that is not charged by mistake is logged once; one that passes unlimited is not
// logged.
func TestMeterFromWithoutALease(t *testing.T) {
	failing := func(*http.Request) (string, error) { return "", errors.New("away") }
	plans := func(opts ...httpmw.Option) *httpmw.Plans {
		return httpmw.NewPlans(failing, map[string][]httpmw.Policy{"p": {{Limiter: bucket(t, algo.PerHour(5)), Key: key("k")}}}, opts...)
	}
	skip := httpmw.WithSkip(func(*http.Request) bool { return true })
	kept := httpmw.WithLeaseInContext()
	for name, row := range map[string]struct {
		wrap func(http.Handler) http.Handler
		logs int
	}{
		"no middleware":       {func(h http.Handler) http.Handler { return h }, 1},
		"without the option":  {httpmw.Limit(bucket(t, algo.PerHour(5)), key("k")), 1},
		"with the option":     {httpmw.Limit(bucket(t, algo.PerHour(5)), key("k"), kept), 0},
		"skipped":             {httpmw.Limit(bucket(t, algo.PerHour(5)), key("k"), kept, skip), 0},
		"skipped, no option":  {httpmw.Limit(bucket(t, algo.PerHour(5)), key("k"), skip), 1},
		"no key":              {httpmw.Limit(bucket(t, algo.PerHour(5)), failing, kept), 0},
		"plans, skipped":      {plans(kept, skip).Limit, 0},
		"plans, without plan": {plans(kept).Limit, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := row.wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				m := meter.From(r.Context(), "tokens", 1)
				m.Use(1)
				m.Close()
			}))
			says := logged(t, func() {
				for range 3 {
					h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
				}
			})
			require.Equal(t, row.logs, strings.Count(says, "code=algo.meter_without_lease"), says)
		})
	}
}

// The lease of a middleware further out is found behind one that skips the request.
func TestLeaseBehindASkip(t *testing.T) {
	outer := httpmw.Limit(bucket(t, algo.PerHour(5)), key("k"), httpmw.WithName("tokens"), httpmw.WithLeaseInContext())
	inner := httpmw.Limit(bucket(t, algo.PerHour(5)), key("k"), httpmw.WithLeaseInContext(), httpmw.WithSkip(func(*http.Request) bool { return true }))
	outer(inner(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		require.True(t, algo.LeaseFrom(r.Context()).Allowed)
		require.True(t, algo.LeaseFrom(r.Context(), "tokens").Allowed)
	}))).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
}

// A refund of the middleware gives back the meter's rest of the first charge, and
// nothing twice.
func TestMeterFromAndRefund(t *testing.T) {
	for _, used := range []int64{1, 4, 9} {
		l := algo.Must(algo.NewTokenBucket(algo.PerHour(100)))
		h := httpmw.Limit(l, key("k"), httpmw.WithName("tokens"), httpmw.WithLeaseInContext(),
			httpmw.WithCost(func(*http.Request) int64 { return 4 }), httpmw.WithRefundIf(func(s int) bool { return s == 500 }),
		)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m := meter.From(r.Context(), "tokens", 5)
			if d, err := m.Reserve(r.Context(), used); err == nil && d.Allowed {
				m.Use(used)
			}
			m.Close()
			w.WriteHeader(http.StatusInternalServerError)
		}))
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		require.Equal(t, 100-max(used-4, 0), remaining(t, l, "k"), "%d are used", used)
	}
}
