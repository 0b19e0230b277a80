package keyfunc_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
)

func newMux() *http.ServeMux {
	mux := http.NewServeMux()
	for _, pattern := range []string{"GET /items/{id}", "/files/{name}/", "/tree/", "POST /items", "other.example/{path...}"} {
		mux.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) {})
	}
	return mux
}

func TestPattern(t *testing.T) {
	key := keyfunc.Pattern(newMux())
	for _, row := range []struct{ method, target, want string }{
		{"GET", "/items/1", "GET /items/{id}"},
		{"GET", "/items/2?x=y", "GET /items/{id}"},
		{"HEAD", "/items/2", "GET /items/{id}"},
		{"POST", "/items", "POST /items"},
		{"GET", "http://other.example/a/b", "~route:other.example/{path...}"},
		{"GET", "/files/a/", "/files/{name}/"},
		{"GET", "/files/a", "/files/{name}/"},
		{"GET", "/files/b", "/files/{name}/"},
		{"GET", "/tree/a/b", "/tree/"},
		{"GET", "/nothing/1", "~unmatched"},
		{"GET", "/nothing/2", "~unmatched"},
		{"DELETE", "/items/1", "~unmatched"},
		{"GET", "/items//1", "GET /items/{id}"},
		{"GET", "/items/../secret", "~unmatched"},
		{"CONNECT", "/files/a", "~unmatched"},
		{"CONNECT", "/files/b", "~unmatched"},
		{"CONNECT", "/files/a%2F", "~unmatched"},
		{"CONNECT", "/files/a/", "/files/{name}/"},
	} {
		r := httptest.NewRequest(http.MethodGet, row.target, nil)
		r.Method = row.method
		require.Equal(t, row.want, keyOf(t, key, r), row.method+" "+row.target)
	}
	require.PanicsWithValue(t, "keyfunc: Pattern: the mux is nil", func() { keyfunc.Pattern(nil) })
}

func TestRoute(t *testing.T) {
	var got string
	mux := http.NewServeMux()
	mux.HandleFunc("GET /items/{id}", func(_ http.ResponseWriter, r *http.Request) { got = keyOf(t, keyfunc.Route(), r) })
	mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/items/17", nil))
	require.Equal(t, "GET /items/{id}", got)
	require.Equal(t, "~unmatched", keyOf(t, keyfunc.Route(), httptest.NewRequest(http.MethodGet, "/made/up", nil)))
}
