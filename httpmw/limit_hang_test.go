package httpmw_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// TestC2_HangWithARetryReserve: while a dependency hangs, retries that give their slots back do
// not open the limit.
func TestC2_HangWithARetryReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(adaptive.New(adaptive.Default()))
		hang, hangs := make(chan struct{}), false
		h := httpmw.Limit(l, keyfunc.Global(), httpmw.WithRetryReserve(.2))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			if hangs {
				<-hang
			}
			time.Sleep(time.Millisecond)
		}))
		for range 200 {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		}
		hangs = true
		for i := range 20_000 {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			if i%2 > 0 {
				r.Header.Set("X-Envoy-Attempt-Count", "2")
			}
			go h.ServeHTTP(httptest.NewRecorder(), r)
			time.Sleep(time.Millisecond)
		}
		require.LessOrEqual(t, l.InFlight(), 1200)
		close(hang)
		time.Sleep(time.Second)
	})
}
