package httpmw_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

const parallel = 16

func manyEnds() int { return parallel * cases.Count(625, 6250) } // within the process
func someEnds() int { return parallel * cases.Count(63, 630) }   // over sockets

// repeat runs f n times, by several goroutines.
func repeat(n int, f func()) {
	var wg sync.WaitGroup
	for range parallel {
		wg.Go(func() {
			for range n / parallel {
				f()
			}
		})
	}
	wg.Wait()
}

// However a request ends, its slot is freed. The requests are streams
// of a real HTTP/2 connection, which outlives them.
func TestC1_NoEndLeaks(t *testing.T) {
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
			repeat(someEnds(), func() {
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
			require.Equal(t, someEnds(), l.sum[algo.Failed]+l.sum[algo.Failed|algo.Untimed]+l.sum[algo.Succeeded|algo.Untimed])
			t.Logf("C1: http: %d requests that end so: %s", someEnds(), name)
		})
	}
}

// Neither does a hijacked connection, closed by either side.
func TestC1_NoHijackLeaks(t *testing.T) {
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
	repeat(someEnds(), func() {
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
	require.Equal(t, someEnds(), l.released(algo.Succeeded|algo.Untimed))
}

// The same many times more, without the network.
func TestC1_NoEndLeaksInProcess(t *testing.T) {
	type end func(http.ResponseWriter, *http.Request, context.CancelFunc)
	for name, row := range map[string]struct {
		end  end
		want algo.Outcome
	}{
		"panic":  {func(http.ResponseWriter, *http.Request, context.CancelFunc) { panic("boom") }, algo.Failed},
		"abort":  {func(http.ResponseWriter, *http.Request, context.CancelFunc) { panic(http.ErrAbortHandler) }, algo.Failed},
		"exit":   {func(http.ResponseWriter, *http.Request, context.CancelFunc) { runtime.Goexit() }, algo.Failed},
		"cancel": {func(_ http.ResponseWriter, _ *http.Request, cancel context.CancelFunc) { cancel() }, algo.Failed | algo.Untimed},
		"hijack": {func(w http.ResponseWriter, _ *http.Request, _ context.CancelFunc) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				go conn.Close()
			}
		}, algo.Succeeded | algo.Untimed},
		"hijack and panic": {func(w http.ResponseWriter, _ *http.Request, _ context.CancelFunc) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			defer conn.Close()
			panic("boom")
		}, algo.Succeeded | algo.Untimed},
	} {
		t.Run(name, func(t *testing.T) {
			l := newSlots(parallel)
			free := make(chan struct{}, parallel)
			repeat(manyEnds(), func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				h := httpmw.Limit(notifying{l, free}, key("k"))(http.HandlerFunc(
					func(w http.ResponseWriter, r *http.Request) { row.end(w, r, cancel) }))
				quietly(func() { h.ServeHTTP(&hijackable{httptest.NewRecorder()}, get().WithContext(ctx)) })
				<-free // the slot, not the goroutine that frees it
			})
			require.Zero(t, l.inFlight())
			require.Equal(t, manyEnds(), l.released(row.want))
			t.Logf("C1: http: %d requests in process that end so: %s", manyEnds(), name)
		})
	}
}

// notifying sends on free for each release.
type notifying struct {
	*slots
	free chan struct{}
}

func (n notifying) Acquire(ctx context.Context, key string, units int64) (algo.Lease, error) {
	lease, err := n.slots.Acquire(ctx, key, units)
	if lease.Allowed {
		lease = algo.NewLease(lease.Decision, n, algo.Handle{Key: key, N: units})
	}
	return lease, err
}

func (n notifying) Release(h algo.Handle, o algo.Outcome) {
	n.slots.Release(h, o)
	n.free <- struct{}{}
}

// hijackable is a recorder whose connection goes nowhere.
type hijackable struct{ *httptest.ResponseRecorder }

func (*hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, other := net.Pipe()
	other.Close()
	return conn, bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn)), nil
}
