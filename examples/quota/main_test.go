//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

// Two instances share the quota of a customer, and customers are apart.
func TestQuotaIsSharedByTheInstances(t *testing.T) {
	server := redistest.Start(t)
	var instances []http.Handler
	for range 2 {
		store, err := distributed.New(server.Client(), distributed.WithTimeout(5*time.Second))
		require.NoError(t, err)
		t.Cleanup(func() { _ = store.Close() })
		h, err := api(store, []byte("pepper"))
		require.NoError(t, err)
		instances = append(instances, h)
	}
	get := func(instance int, key string) int {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-Api-Key", key)
		w := httptest.NewRecorder()
		instances[instance].ServeHTTP(w, r)
		return w.Code
	}
	denied := 0
	for i := range 60 {
		if get(i%2, "alice") == http.StatusTooManyRequests {
			denied++
		}
	}
	require.Positive(t, denied)
	require.Equal(t, http.StatusOK, get(0, "bob"))
}
