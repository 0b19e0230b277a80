// Package migrate_test runs the two sides of the pages in docs/migrate beside each
// other.
package migrate_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

var (
	ctx     = context.Background()
	handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
)

// admitted counts how many of n calls are admitted.
func admitted(n int, allow func() bool) (count int) {
	for range n {
		if allow() {
			count++
		}
	}
	return count
}

// served are the statuses that h answers n requests of one client with.
func served(n int, h http.Handler) (statuses []int) {
	for range n {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		statuses = append(statuses, w.Code)
	}
	return statuses
}

// server is a Redis in this process, with a store on it.
func server(t *testing.T) (*redis.Client, *distributed.Store) {
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	store, err := distributed.New(client, distributed.WithTimeout(10*time.Second))
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = store.Close()
		_ = client.Close()
	})
	return client, store
}

// must is algo.Must for calls whose error the test does not expect.
func must[T any](v T, err error) T { return algo.Must(v, err) }
