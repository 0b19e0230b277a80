package proxy_test

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An upstream closes idle connections after 1.5 s, and POSTs, which cannot be repeated,
// come at about that distance: none of them meets the end of a connection.
func TestUpstreamClosesIdleConnections(t *testing.T) {
	u := httptest.NewUnstartedServer(http.HandlerFunc(ok))
	u.Config.IdleTimeout = 1500 * time.Millisecond
	u.Start()
	defer u.Close()
	r := newRig(t, "timeouts: {upstream_idle: 50ms}\nroutes: [{pattern: /, upstream: "+u.URL+"}]\n", ok)
	var failed atomic.Int64
	var clients sync.WaitGroup
	for range 40 {
		clients.Go(func() {
			for range 4 {
				resp, err := r.front.Client().Post(r.front.URL, "text/plain", nil)
				if err != nil || resp.StatusCode != http.StatusOK {
					failed.Add(1)
				}
				if err == nil {
					_ = resp.Body.Close()
				}
				time.Sleep(1497*time.Millisecond + rand.N(5*time.Millisecond))
			}
		})
	}
	clients.Wait()
	require.Zero(t, failed.Load())
}
