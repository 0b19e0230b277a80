package httpmw_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
)

// TestConnectionsOutliveDenials: a connection on which a request with a body was denied, or
// waited for its turn, serves the next requests, and none is broken.
func TestConnectionsOutliveDenials(t *testing.T) {
	t.Parallel()
	half, err := algo.NewTokenBucket(algo.PerHour(100))
	require.NoError(t, err)
	queued, err := adaptive.New(adaptive.Fixed(1), adaptive.WithQueue(adaptive.FIFO(100, 10*time.Second)))
	require.NoError(t, err)
	for name, limit := range map[string]struct {
		algo.Limiter
		denies bool
	}{"denied": {half, true}, "queued": {queued, false}} {
		t.Run(name, func(t *testing.T) {
			inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Ignore") == "" {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				time.Sleep(time.Millisecond)
				_, _ = io.WriteString(w, "ok")
			})
			server := httptest.NewUnstartedServer(httpmw.Limit(limit, key("k"))(inner))
			var lines lockedBuilder
			server.Config.ErrorLog = log.New(&lines, "", 0)
			server.Start()
			defer server.Close()
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 20}}
			defer client.CloseIdleConnections()
			var clients sync.WaitGroup
			counts := make([]map[int]int, 20)
			for c := range counts {
				counts[c] = map[int]int{}
				clients.Go(func() {
					for i := range 40 {
						var body io.Reader = strings.NewReader(strings.Repeat("x", 100+i*500))
						if c%4 == 0 {
							body = io.MultiReader(body) // chunked
						}
						req, err := http.NewRequest("POST", server.URL, body)
						assertNoError(t, err)
						if c%2 == 0 {
							req.Header.Set("Ignore", "1")
						}
						resp, err := client.Do(req)
						if err != nil {
							counts[c][0]++
							t.Log(err)
							continue
						}
						_, err = io.Copy(io.Discard, resp.Body)
						assertNoError(t, err)
						resp.Body.Close()
						counts[c][resp.StatusCode]++
					}
				})
			}
			clients.Wait()
			all := map[int]int{}
			for _, m := range counts {
				for status, n := range m {
					all[status] += n
				}
			}
			t.Log(all)
			require.NotContains(t, lines.String(), "panic")
			if limit.denies {
				require.Equal(t, map[int]int{200: 100, 429: 700}, all)
			} else {
				require.Equal(t, map[int]int{200: 800}, all)
			}
		})
	}
}

// lockedBuilder is a strings.Builder for several goroutines.
type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
