package httpmw_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/stretchr/testify/require"
)

const (
	manyEnds = 10_000
	parallel = 16
)

// repeat runs f manyEnds times, by several goroutines.
func repeat(f func()) {
	var wg sync.WaitGroup
	for range parallel {
		wg.Go(func() {
			for range manyEnds / parallel {
				f()
			}
		})
	}
	wg.Wait()
}

// However a request ends, its slot is free afterwards. The requests are streams
// of a real HTTP/2 connection, which outlives them.
func TestNoEndLeaks(t *testing.T) {
	type end func(http.ResponseWriter, *http.Request)
	for name, end := range map[string]end{
		"panic": func(http.ResponseWriter, *http.Request) { panic("boom") },
		"abort": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"exit":  func(http.ResponseWriter, *http.Request) { runtime.Goexit() },
		"cancel": func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newSlots(1 << 20)
			var handlers sync.WaitGroup
			limited := httpmw.Limit(l, key("k"))(http.HandlerFunc(end))
			url, client := start(t, "h2c", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer handlers.Done()
				limited.ServeHTTP(w, r)
			}))
			repeat(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r, _ := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
				handlers.Add(1)
				if resp, err := client.Do(r); err == nil {
					cancel() // the handler has flushed: it is waiting for this
					resp.Body.Close()
				}
			})
			handlers.Wait()
			require.Zero(t, l.inFlight())
			l.mu.Lock()
			defer l.mu.Unlock()
			require.Equal(t, manyEnds, l.sum[algo.Failed]+l.sum[algo.Ignored])
		})
	}
}

// Neither does a hijacked connection, whoever closes it.
func TestNoHijackLeaks(t *testing.T) {
	l := newSlots(1 << 20)
	var conns sync.WaitGroup
	limited := httpmw.Limit(l, key("k"))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		conns.Go(func() {
			defer conn.Close()
			io.Copy(io.Discard, conn)
			conn.Close() // twice does no harm
		})
	}))
	var handlers sync.WaitGroup
	url, _ := start(t, "HTTP/1.1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer handlers.Done()
		limited.ServeHTTP(w, r)
	}))
	addr := strings.TrimPrefix(url, "http://")
	repeat(func() {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		handlers.Add(1)
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		conn.Close()
	})
	handlers.Wait()
	conns.Wait()
	require.Zero(t, l.inFlight())
	require.Equal(t, manyEnds, l.released(algo.Ignored))
}
