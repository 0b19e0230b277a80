package admin_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw/admin"
)

// TestMain: nothing here has a goroutine.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "0123456789abcdef"

// newAdmin makes a page that logs nothing.
func newAdmin(t testing.TB, opts ...admin.Option) *admin.Admin {
	t.Helper()
	quiet := admin.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	a, err := admin.New(append([]admin.Option{quiet}, opts...)...)
	require.NoError(t, err)
	return a
}

func bucket(t testing.TB, r algo.Rate) *algo.RateLimiter {
	t.Helper()
	b, err := algo.NewTokenBucket(r)
	require.NoError(t, err)
	return b
}

// local is a request as the page on this machine sends it.
func local(method, path, body string) *http.Request {
	r := httptest.NewRequest(method, "http://localhost:9090/"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:4711"
	return r
}

// order is an action as the page sends it.
func order(action, body string) *http.Request {
	r := local(http.MethodPost, "api/"+action, body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Sluice-Admin", "1")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// object is the answer, which must be JSON.
func object(t testing.TB, w *httptest.ResponseRecorder) (o map[string]any) {
	t.Helper()
	require.Equal(t, "application/json; charset=utf-8", w.Header().Get("Content-Type"))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &o), w.Body)
	return o
}

// ask sends an action that must be carried out.
func ask(t testing.TB, a *admin.Admin, action, body string) map[string]any {
	t.Helper()
	w := serve(a, order(action, body))
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	return object(t, w)
}

// state is what the page shows.
func state(t testing.TB, a *admin.Admin) map[string]any {
	t.Helper()
	w := serve(a, local(http.MethodGet, "api/state", ""))
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	return object(t, w)
}

// at walks into objects and arrays.
func at(t testing.TB, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			v = v.(map[string]any)[step]
		case int:
			require.Less(t, step, len(v.([]any)), path)
			v = v.([]any)[step]
		}
	}
	return v
}

// total adds up a column of a policy.
func total(t testing.TB, s map[string]any, policy, column string) (sum float64) {
	t.Helper()
	for _, p := range s["policies"].([]any) {
		if at(t, p, "name") == policy {
			if counts, ok := at(t, p, "columns", column).([]any); ok {
				for _, n := range counts {
					sum += n.(float64)
				}
			}
			return sum
		}
	}
	require.Fail(t, "no such policy", policy)
	return 0
}
