//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// Two instances share the quota of a customer, customers are apart, and the
// plan makes the difference.
func TestQuotaIsSharedByTheInstances(t *testing.T) {
	server := redistest.Start(t)
	var instances []http.Handler
	for range 2 {
		store, err := distributed.New(server.Client(), distributed.WithTimeout(5*time.Second))
		require.NoError(t, err)
		t.Cleanup(func() { _ = store.Close() })
		h, err := api(store)
		require.NoError(t, err)
		instances = append(instances, h)
	}
	admitted := func(key string) (n int) {
		for i := range 60 {
			if get(instances[i%2], key).Code == http.StatusOK {
				n++
			}
		}
		return n
	}
	require.Less(t, admitted("bob-key"), 60, "10 at once and 5 a second over both instances")
	require.Equal(t, 60, admitted("alice-key"), "a gold customer may burst 100")
	require.Equal(t, http.StatusUnauthorized, get(instances[0], "mallory").Code)
	fields := get(instances[0], "alice-key").Header()
	require.Contains(t, fields.Get("RateLimit"), `"second";r=`)
	require.Contains(t, fields.Get("RateLimit"), `"day";r=`)
}

// Without Redis the service goes on, and says so once.
func TestQuotaWithoutRedis(t *testing.T) {
	told := make(chan distributed.Event, 100)
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	store, err := distributed.New(client, distributed.WithAssumedInstances(1), distributed.WithHook(func(e distributed.Event) { told <- e }))
	require.NoError(t, err)
	defer store.Close()
	h, err := api(store)
	require.NoError(t, err)
	opened := 0
	ask := func() bool {
		require.Equal(t, http.StatusOK, get(h, "alice-key").Code)
		for len(told) > 0 {
			if e := <-told; e.Kind == distributed.BreakerChanged && e.Phase == distributed.PhaseOpen {
				opened++
			}
		}
		return opened > 0
	}
	require.Eventually(t, ask, 10*time.Second, time.Millisecond)
	for range 8 {
		ask()
	}
	require.Equal(t, 1, opened)
}

func get(h http.Handler, key string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Api-Key", key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
