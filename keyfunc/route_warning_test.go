package keyfunc_test

import (
	"bytes"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
)

// TestRouteInFrontOfTheRouter: a limit that no route reaches says so once. Routes that are not found
// behind others are no reason.
func TestRouteInFrontOfTheRouter(t *testing.T) {
	key := keyfunc.Route()
	around := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := key(r)
			require.NoError(t, err)
			next.ServeHTTP(w, r)
		})
	}
	none := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for name, row := range map[string]struct {
		wire  func(*http.ServeMux) http.Handler
		lines int
	}{
		"in front":                {func(mux *http.ServeMux) http.Handler { mux.Handle("/{$}", none); return around(mux) }, 1},
		"inside":                  {func(mux *http.ServeMux) http.Handler { mux.Handle("/{$}", around(none)); return mux }, 0},
		"inside, with a fallback": {func(mux *http.ServeMux) http.Handler { mux.Handle("/", around(none)); return mux }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			defer log.SetOutput(log.Writer())
			log.SetOutput(&out)
			keyfunc.ResetWarnings()
			key = keyfunc.Route()
			handler := row.wire(http.NewServeMux())
			for range 1000 {
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			}
			require.Equal(t, row.lines, strings.Count(out.String(), "code=keyfunc.route_unmatched"), out.String())
			require.Equal(t, row.lines, strings.Count(out.String(), "\n"), out.String())
		})
	}
}
