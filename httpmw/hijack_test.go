package httpmw_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/early"
)

// echo answers each line on a hijacked connection, like a websocket, and ends
// with the connection, after the handler has.
var echo = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	go func() {
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		for {
			line, err := rw.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(conn, line)
		}
	}()
})

func upgrade(t testing.TB, conn net.Conn) *bufio.Reader {
	_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	return in
}

// A hijacked connection holds its slot until it is closed.
func TestC1_HijackedConnectionHoldsItsSlot(t *testing.T) {
	unwrapOnly := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(struct{ unwrapper }{unwrapper{w}}, r)
		})
	}
	same := func(next http.Handler) http.Handler { return next }
	for name, outer := range map[string]func(http.Handler) http.Handler{"direct": same, "under a wrapper": unwrapOnly} {
		t.Run(name, func(t *testing.T) {
			l := newSlots(1)
			returned := make(chan struct{}, 2)
			limited := httpmw.Limit(l, key("k"))(echo)
			url, _ := start(t, "HTTP/1.1", outer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				limited.ServeHTTP(w, r)
				returned <- struct{}{}
			})))
			conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			require.NoError(t, err)
			in := upgrade(t, conn)
			<-returned
			require.EqualValues(t, 1, l.inFlight(), "the handler has returned, the connection lives")
			resp, err := http.Get(url)
			require.NoError(t, err)
			resp.Body.Close()
			require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
			io.WriteString(conn, "hello\n")
			line, err := in.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "hello\n", line)
			conn.Close()
			require.Eventually(t, func() bool { return l.inFlight() == 0 }, 10*time.Second, time.Millisecond)
			http.DefaultClient.CloseIdleConnections()
		})
	}
}

// unwrapper is a writer that can do things only through Unwrap.
type unwrapper struct{ beneath http.ResponseWriter }

func (u unwrapper) Header() http.Header         { return u.beneath.Header() }
func (u unwrapper) Write(b []byte) (int, error) { return u.beneath.Write(b) }
func (u unwrapper) WriteHeader(status int)      { u.beneath.WriteHeader(status) }
func (u unwrapper) Unwrap() http.ResponseWriter { return u.beneath }

// TestHijackedConnectionClosesHalf: a connection keeps CloseWrite, with which a reverse proxy
// passes the end of one direction on, behind any listener, and gets none that it has not.
func TestHijackedConnectionClosesHalf(t *testing.T) {
	for name, hides := range map[string]bool{"has it": false, "has it not": true} {
		t.Run(name, func(t *testing.T) {
			srv := &http.Server{ErrorLog: quietLog}
			srv.Handler = httpmw.Limit(newSlots(1), key("k"))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				conn, rw, err := http.NewResponseController(w).Hijack()
				if !assertNoError(t, err) {
					return
				}
				defer conn.Close()
				half, ok := conn.(interface{ CloseWrite() error })
				if ok == hides {
					t.Errorf("CloseWrite: %v", ok)
				}
				if !ok {
					return
				}
				_, err = io.WriteString(conn, "bye")
				assertNoError(t, err)
				assertNoError(t, half.CloseWrite())
				line, err := rw.ReadString('\n')
				assertNoError(t, err)
				if line != "still here\n" {
					t.Errorf("read %q", line)
				}
			}))
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			var outer net.Listener = early.NewListener(srv, ln, admitting())
			if hides {
				outer = plainConns{ln}
			}
			served := make(chan error)
			go func() { served <- srv.Serve(outer) }()
			conn, err := net.Dial("tcp", ln.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			require.NoError(t, err)
			got, err := io.ReadAll(conn)
			require.NoError(t, err)
			if !hides {
				require.Equal(t, "bye", string(got))
				_, err = io.WriteString(conn, "still here\n")
				require.NoError(t, err)
			}
			require.NoError(t, srv.Close())
			require.ErrorIs(t, <-served, http.ErrServerClosed)
		})
	}
}

// plainConns is a listener whose connections have the methods of net.Conn alone.
type plainConns struct{ net.Listener }

func (l plainConns) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return struct{ net.Conn }{conn}, err
}

// A writer that can be hijacked nowhere cannot be hijacked wrapped either.
func TestHijackNotSupported(t *testing.T) {
	w := httpmw.Watch(unwrapper{httptest.NewRecorder()})
	_, _, err := http.NewResponseController(w).Hijack()
	require.ErrorIs(t, err, http.ErrNotSupported)
	_, isHijacker := w.(http.Hijacker)
	require.False(t, isHijacker)
	for _, isFlusher := range []http.ResponseWriter{httptest.NewRecorder(), unwrapper{httptest.NewRecorder()}} {
		require.NoError(t, http.NewResponseController(httpmw.Watch(isFlusher)).Flush())
	}
}

// A connection that is dropped without Close frees its slot in the end.
func TestC1_DroppedConnection(t *testing.T) {
	l := newSlots(1)
	url, _ := start(t, "HTTP/1.1", httpmw.Limit(l, key("k"))(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Hijacker).Hijack()
		})))
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	require.Eventually(t, func() bool {
		runtime.GC()
		return l.released(algo.Succeeded|algo.Untimed) == 1 && l.inFlight() == 0
	}, 10*time.Second, 5*time.Millisecond)
}

// A handler that keeps only the buffers uses the connection, and holds the slot.
func TestC1_BuffersKeepTheSlot(t *testing.T) {
	for name, keep := range map[string]func(*bufio.ReadWriter) any{
		"reader": func(rw *bufio.ReadWriter) any { return rw.Reader },
		"writer": func(rw *bufio.ReadWriter) any { return rw.Writer },
	} {
		t.Run(name, func(t *testing.T) {
			l := newSlots(1)
			kept := make(chan any, 1)
			url, _ := start(t, "HTTP/1.1", httpmw.Limit(l, key("k"))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, rw, err := w.(http.Hijacker).Hijack()
				if assertNoError(t, err) {
					kept <- keep(rw)
				}
			})))
			conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			require.NoError(t, err)
			defer conn.Close()
			io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			buffer := <-kept
			for range 20 {
				runtime.GC()
				time.Sleep(time.Millisecond)
				require.EqualValues(t, 1, l.inFlight())
			}
			runtime.KeepAlive(buffer)
			require.Eventually(t, func() bool {
				runtime.GC()
				return l.inFlight() == 0
			}, 10*time.Second, 5*time.Millisecond)
		})
	}
}

// Over TLS the connection is another type, and the slot follows it too.
func TestC1_HijackOverTLS(t *testing.T) {
	l := newSlots(1)
	s := httptest.NewTLSServer(httpmw.Limit(l, key("k"))(echo)) // HTTP/1.1 without EnableHTTP2
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	conn, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{RootCAs: pool, ServerName: "example.com"})
	require.NoError(t, err)
	upgrade(t, conn)
	require.EqualValues(t, 1, l.inFlight())
	conn.Close()
	require.Eventually(t, func() bool { return l.inFlight() == 0 }, 10*time.Second, time.Millisecond)
}
