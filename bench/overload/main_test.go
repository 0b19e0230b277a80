package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/bench/loadgen"
)

func TestLoads(t *testing.T) {
	set(t, loads, "0.85,5")
	times, err := parseLoads()
	require.NoError(t, err)
	require.Equal(t, []float64{.85, 5}, times)
	set(t, loads, "0")
	_, err = parseLoads()
	require.ErrorContains(t, err, `the load is "0"`)
}

func set[T any](t *testing.T, flag *T, value T) {
	was := *flag
	t.Cleanup(func() { *flag = was })
	*flag = value
}

// TestSender: over HTTP and TLS a request names its tenant and cost, and a client that gives
// up is no denial.
func TestSender(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("X-Tenant") {
		case "slow":
			<-r.Context().Done()
		case "denied":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			if r.Header.Get("X-Cost") != "20" {
				w.WriteHeader(http.StatusBadRequest)
			}
		}
	})
	plain, encrypted := httptest.NewServer(h), httptest.NewTLSServer(h)
	t.Cleanup(plain.Close)
	t.Cleanup(encrypted.Close)
	for way, server := range map[string]*httptest.Server{"": plain, "TLS": encrypted, manyClients: encrypted} {
		s, err := newSender(server.Listener.Addr().String(), way)
		require.NoError(t, err)
		require.EqualValues(t, 200, s.send("t", 20, time.Minute), way)
		require.EqualValues(t, 503, s.send("denied", 0, time.Minute), way)
		require.Equal(t, loadgen.TimedOut, s.send("slow", 0, 100*time.Millisecond), way)
		s.close()
	}
}
