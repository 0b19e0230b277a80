package httpmw_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
)

// TestHTTP2HangUpsInTheQueue: a stream that its client resets while it waits gives its place up,
// whatever has been sent of its body, and the connection serves others.
func TestHTTP2HangUpsInTheQueue(t *testing.T) {
	for _, protocol := range []string{"HTTP/2", "h2c"} {
		for name, body := range map[string]func() io.Reader{
			"no body": func() io.Reader { return http.NoBody },
			"a body":  func() io.Reader { return strings.NewReader("whole") },
			"a body on its way": func() io.Reader {
				r, w := io.Pipe()
				go func() { _, _ = w.Write([]byte("begin")) }()
				return r
			},
			"a large body": func() io.Reader { return strings.NewReader(strings.Repeat("x", 4<<20)) },
		} {
			t.Run(protocol+"/"+name, func(t *testing.T) {
				l := queueing(t).(*adaptive.Limiter)
				hold, err := l.Acquire(t.Context(), "", 1)
				require.NoError(t, err)
				events := make(chan telemetry.Event, 10)
				arrived := make(chan struct{}, 2)
				arrival := func(*http.Request) (string, error) { arrived <- struct{}{}; return "", nil }
				url, client := start(t, protocol, httpmw.Limit(l, arrival, httpmw.WithObserver(func(e telemetry.Event) { events <- e }))(ok))
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() {
					r, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, body())
					resp, err := client.Do(r)
					if err == nil {
						resp.Body.Close()
					}
					done <- err
				}()
				<-arrived
				time.Sleep(30 * time.Millisecond) // it waits, longer than until a body is read ahead
				cancel()
				require.Error(t, <-done)
				select {
				case e := <-events:
					require.Equal(t, telemetry.Canceled, e.Result)
				case <-time.After(10 * time.Second):
					t.Fatal("the hang-up was not noticed")
				}
				hold.Release(algo.Failed | algo.Untimed)
				status, err := visit(client, url)
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, status)
			})
		}
	}
}

// TestHTTP2StreamsEnd: trailers arrive, and slots are free after streams that end, panic or are
// reset by their client while the handler writes or reads.
func TestHTTP2StreamsEnd(t *testing.T) {
	for _, protocol := range []string{"HTTP/2", "h2c"} {
		t.Run(protocol, func(t *testing.T) {
			l := algo.Must(adaptive.New(strategy.AIMD(adaptive.WithLimits(1, 3), strategy.WithInitial(3))))
			var running atomic.Int64
			url, client := start(t, protocol, httpmw.Limit(l, key(""), httpmw.WithLeaseInContext())(http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) {
					running.Add(1)
					defer running.Add(-1)
					w.Header().Set("Trailer", "X-Declared")
					w.WriteHeader(http.StatusOK)
					switch r.URL.Path {
					case "/panic":
						panic(http.ErrAbortHandler)
					case "/write":
						for err := error(nil); err == nil; {
							_, err = w.Write(make([]byte, 1<<16))
						}
					case "/flush":
						for r.Context().Err() == nil {
							_ = http.NewResponseController(w).Flush()
							time.Sleep(time.Millisecond)
						}
					case "/read":
						_ = http.NewResponseController(w).Flush()
						_, _ = io.Copy(io.Discard, r.Body)
					}
					_, _ = io.WriteString(w, "body")
					w.Header().Set("X-Declared", "a")
					w.Header().Set(http.TrailerPrefix+"X-Late", "b")
				})))
			for _, path := range []string{"/", "/panic", "/write", "/flush", "/read"} {
				for range 5 {
					ctx, cancel := context.WithCancel(t.Context())
					var body io.Reader
					if path == "/read" {
						body, _ = io.Pipe()
					}
					r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, body)
					require.NoError(t, err)
					resp, err := client.Do(r)
					if path == "/" {
						require.NoError(t, err)
						_, err = io.Copy(io.Discard, resp.Body)
						require.NoError(t, err)
						require.Equal(t, "a", resp.Trailer.Get("X-Declared"))
						require.Equal(t, "b", resp.Trailer.Get("X-Late"))
					}
					cancel()
					if err == nil {
						resp.Body.Close()
					}
					require.Eventually(t, func() bool { return l.InFlight() == 0 && running.Load() == 0 }, 10*time.Second, time.Millisecond, path)
				}
			}
			require.Equal(t, l.Limit(), room(t, l))
		})
	}
}
