package httpmw_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
)

// told keeps what it is told about connections.
type told struct {
	algo.Limiter
	shared, alone atomic.Int64
}

func (l *told) SharesConnection(yes bool) {
	if yes {
		l.shared.Add(1)
	} else {
		l.alone.Add(1)
	}
}

// TestTellsThatRequestsShareConnections: an adaptive limiter must know it.
func TestTellsThatRequestsShareConnections(t *testing.T) {
	for name, wrap := range map[string]func(l algo.Limiter, next http.Handler) http.Handler{
		"Limit": func(l algo.Limiter, next http.Handler) http.Handler { return httpmw.Limit(l, key("k"))(next) },
		"Limits": func(l algo.Limiter, next http.Handler) http.Handler {
			return httpmw.Limits([]httpmw.Policy{
				{Name: "a", Limiter: algo.Unlimited(), Key: key("k")}, {Name: "b", Limiter: l, Key: key("k")},
			})(next)
		},
		"NewPlans": func(l algo.Limiter, next http.Handler) http.Handler {
			return httpmw.NewPlans(key("free"), map[string][]httpmw.Policy{"free": {{Name: "a", Limiter: l, Key: key("k")}}}).Limit(next)
		},
	} {
		l := &told{Limiter: algo.Unlimited()}
		h := wrap(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for _, major := range []int{1, 2, 2, 3} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.ProtoMajor = major
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		require.Equal(t, int64(3), l.shared.Load(), name)
		require.Equal(t, int64(1), l.alone.Load(), name)
	}
}

// TestTellsByProtocol: on real servers.
func TestTellsByProtocol(t *testing.T) {
	for protocol, shared := range map[string]int64{"HTTP/1.1": 0, "HTTP/2": 2, "h2c": 2} {
		l := &told{Limiter: algo.Unlimited()}
		url, client := start(t, protocol, httpmw.Limit(l, key("k"))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
		for range 2 {
			resp, err := client.Get(url)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
		}
		require.Equal(t, shared, l.shared.Load(), protocol)
		require.Equal(t, 2-shared, l.alone.Load(), protocol)
	}
}
