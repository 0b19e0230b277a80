package hints_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/hints"
	"github.com/sluice-go/sluice/keyfunc"
)

const envoyTimeout = "X-Envoy-Expected-Rq-Timeout-Ms"

// TestTimeout: a request whose client gives up before the handler could end is denied.
func TestTimeout(t *testing.T) {
	for name, row := range map[string]struct {
		field  string
		ctx    time.Duration // deadline of the context; 0: none
		status int
	}{
		"none":                  {"", 0, 200},
		"enough":                {"200", 0, 200},
		"too short":             {"50", 0, 503},
		"zero":                  {"0", 0, 503},
		"no number":             {"-1", 0, 200},
		"huge":                  {"99999999999999999999", 0, 200},
		"the shorter of two":    {"1000", 50 * time.Millisecond, 503},
		"the field, if shorter": {"50", time.Second, 503},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hints.Timeout(envoyTimeout)(httpmw.Limit(algo.Must(adaptive.New(adaptive.Default())), keyfunc.Global())(
					http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(100 * time.Millisecond) })))
				serve := func(field string, within time.Duration) int {
					r := httptest.NewRequest(http.MethodGet, "/", nil)
					r.Header.Set(envoyTimeout, field)
					if within > 0 {
						ctx, cancel := context.WithTimeout(t.Context(), within)
						defer cancel()
						r = r.WithContext(ctx)
					}
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					return w.Code
				}
				require.Equal(t, 200, serve("", 0))
				require.Equal(t, row.status, serve(row.field, row.ctx))
			})
		})
	}
	require.PanicsWithValue(t, "hints: Timeout: the header is empty", func() { hints.Timeout("") })
}

// The handler's context ends when the client gives up.
func ExampleTimeout() {
	handler := hints.Timeout("X-Timeout-Ms")(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		deadline, ok := r.Context().Deadline()
		fmt.Println(ok, time.Until(deadline) <= time.Minute)
	}))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Timeout-Ms", "60000")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	// Output: true true
}
