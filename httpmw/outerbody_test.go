package httpmw_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
)

// TestBodiesOfOuterHandlers: no reader of a handler around the middleware runs beside the
// handler. http.MaxBytesHandler writes the header of the response beyond its limit.
func TestBodiesOfOuterHandlers(t *testing.T) {
	t.Parallel()
	fields := func(w http.ResponseWriter) {
		for i := range 8 {
			w.Header().Set(fmt.Sprint("X-Field-", i), "value")
		}
	}
	denied := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fields(w)
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.Copy(io.Discard, r.Body)
	})
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fields(w)
		_, _ = io.Copy(io.Discard, r.Body)
	})
	for name, limit := range map[string]func(http.Handler) http.Handler{
		"denied": httpmw.Limit(denying(algo.Quota, time.Second), key("k"), httpmw.WithDenied(denied)),
		"delay":  httpmw.Limit(bucket(t, algo.PerSecond(400), algo.Burst(1), algo.MaxWait(time.Minute)), key("k")),
		"queue": httpmw.Limit(algo.Must(adaptive.New(adaptive.Fixed(1),
			adaptive.WithQueue(adaptive.FIFO(100, 20*time.Millisecond)))), key("k"), httpmw.WithDenied(denied)),
	} {
		t.Run(name, func(t *testing.T) {
			base, client := start(t, "HTTP/1.1", http.MaxBytesHandler(limit(next), 500))
			body := strings.Repeat("x", 501)
			var clients sync.WaitGroup
			for range 40 {
				clients.Go(func() {
					for range 20 {
						pr, pw := io.Pipe()
						go func() {
							_, _ = io.WriteString(pw, body[:400])
							time.Sleep(10 * time.Millisecond)
							_, _ = io.WriteString(pw, body[400:])
							pw.Close()
						}()
						if resp, err := client.Post(base, "text/plain", pr); err == nil {
							_, _ = io.Copy(io.Discard, resp.Body)
							resp.Body.Close()
						}
						pr.Close()
					}
				})
			}
			clients.Wait()
		})
	}
}

// panicsBeside is a body that is read only while its handler serves.
type panicsBeside struct {
	io.ReadCloser
	serving *atomic.Bool
}

func (b panicsBeside) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.serving.Load() {
		panic("read after the handler has returned")
	}
	return n, err
}

// hidden is a writer without Unwrap.
type hidden struct{ http.ResponseWriter }

// TestNothingReadsAfterTheHandler: behind a writer that shows nothing of the connection too.
func TestNothingReadsAfterTheHandler(t *testing.T) {
	limited := httpmw.Limit(denying(algo.Quota, time.Second), key("k"), httpmw.WithDenied(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })))(unreachable(t))
	outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var serving atomic.Bool
		serving.Store(true)
		defer serving.Store(false)
		r.Body = panicsBeside{r.Body, &serving}
		limited.ServeHTTP(hidden{w}, r)
	})
	for range 3 {
		require.Contains(t, answers(t, outer, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1000\r\n\r\nbegin", strings.Repeat("x", 995)), "HTTP/1.1 429")
	}
}
