// Package guides_test compiles and runs the code of the guides: each block of Go
// code in a page is copied unchanged from a file of this directory.
package guides_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// user is what the authentication of these examples puts into the context.
type user struct{ name, plan, tenant string }

type contextKey struct{}

// users by API key. A real service looks them up where it keeps them.
var users = map[string]user{
	"key-a": {"alice", "pro", "acme"},
	"key-b": {"bob", "free", "acme"},
	"key-c": {"carol", "free", "zorg"},
}

// authenticate puts the user into the context, and lets strangers through.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, ok := users[r.Header.Get("X-Api-Key")]; ok {
			r = r.WithContext(context.WithValue(r.Context(), contextKey{}, u))
		}
		next.ServeHTTP(w, r)
	})
}

func userOf(ctx context.Context) (string, bool) {
	u, ok := ctx.Value(contextKey{}).(user)
	return u.name, ok
}

func planOf(ctx context.Context) (string, bool) {
	u, ok := ctx.Value(contextKey{}).(user)
	return u.plan, ok
}

func tenantOf(ctx context.Context) (string, bool) {
	u, ok := ctx.Value(contextKey{}).(user)
	return u.tenant, ok
}

// ok answers with 200.
var ok = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// get sends a request to h; with an API key, if it is not empty.
func get(h http.Handler, path, apiKey string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	if apiKey != "" {
		r.Header.Set("X-Api-Key", apiKey)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// redisClient is a client of a Redis in this process.
func redisClient() (client *redis.Client, stop func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	client = redis.NewClient(&redis.Options{Addr: server.Addr(), ReadTimeout: 10 * time.Second})
	return client, func() {
		_ = client.Close()
		server.Close()
	}
}
