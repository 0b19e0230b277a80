package client_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/httpmw/client"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/keyfunc"
)

// paced are transports around a base that answers at once, with a quota in fields.
func paced(t testing.TB) (base http.RoundTripper, limits map[string]http.RoundTripper) {
	answer := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{
		"Content-Type": {"application/json"}, "Date": {"Fri, 27 Nov 2026 20:00:00 GMT"},
		"X-Ratelimit-Remaining-Requests": {"1000000000"}, "X-Ratelimit-Reset-Requests": {"2s"},
	}}
	base = roundTrip(func(*http.Request) (*http.Response, error) { return answer, nil })
	return base, map[string]http.RoundTripper{
		"bucket":  client.Transport(base, bucket(t, algo.PerSecond(1e6), algo.Burst(1e9)), keyfunc.Global()),
		"learned": client.Transport(base, learn.New(algo.PerSecond(1e8)), keyfunc.Global()),
	}
}

// BenchmarkTransport is what a request costs that waits for nothing.
func BenchmarkTransport(b *testing.B) {
	base, limits := paced(b)
	limits["none"] = base
	for name, rt := range limits {
		b.Run(name, func(b *testing.B) {
			r := outgoing(b.Context(), "http://partner/")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rt.RoundTrip(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A request that waits for nothing allocates its reservation and a context.
func TestTransportAllocations(t *testing.T) {
	if cases.Race {
		t.Skip("the race detector allocates")
	}
	_, limits := paced(t)
	for name, rt := range limits {
		r := outgoing(t.Context(), "http://partner/")
		require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
			_, err := rt.RoundTrip(r)
			require.NoError(t, err)
		}), 2., name)
	}
}
