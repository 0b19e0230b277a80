package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/bench/loadgen"
)

// TestRunning: a server that answers two requests at a time and rejects the others, under five
// times its capacity.
func TestRunning(t *testing.T) {
	places := make(chan struct{}, 2)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case places <- struct{}{}:
			time.Sleep(5 * time.Millisecond)
			<-places
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(s.Close)
	set(t, seconds, .3)
	set(t, loads, "5")
	require.NoError(t, running(s.URL+"/", time.Minute))
	require.ErrorContains(t, running("nowhere", time.Minute), `the URL is "nowhere"`)
	set(t, loads, "0")
	require.ErrorContains(t, running(s.URL+"/", time.Minute), `the load is "0"`)
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
