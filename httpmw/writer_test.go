package httpmw_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/stretchr/testify/require"
)

// abilities is what a handler can do with its response writer.
func abilities(w http.ResponseWriter) map[string]bool {
	has := interfaces(w)
	_, has["FlushError"] = w.(interface{ FlushError() error })
	_, has["StringWriter"] = w.(io.StringWriter)
	c := http.NewResponseController(w)
	has["read deadline"] = c.SetReadDeadline(time.Time{}) == nil
	has["write deadline"] = c.SetWriteDeadline(time.Time{}) == nil
	has["full duplex"] = c.EnableFullDuplex() == nil
	return has
}

// What a handler can do is the same with and without the middleware.
func TestWriterMatrix(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			seen := make(chan map[string]bool, 1)
			look := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { seen <- abilities(w) })
			with := httpmw.Limit(newSlots(1), key("k"), httpmw.WithRefundIf(func(int) bool { return false }))(look)
			var got []map[string]bool
			for _, h := range []http.Handler{look, with, httpmw.Limit(newSlots(1), key("k"))(with)} {
				url, client := start(t, protocol, h)
				resp, err := client.Get(url)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				got = append(got, <-seen)
			}
			require.True(t, got[0]["Flusher"])
			require.Equal(t, protocol == "HTTP/1.1", got[0]["Hijacker"])
			require.Equal(t, got[0], got[1])
			require.Equal(t, got[0], got[2], "wrapped twice")
		})
	}
}

type (
	plain     struct{ http.ResponseWriter }
	withFlush struct {
		plain
		http.Flusher
	}
	withHijack struct {
		plain
		http.Hijacker
	}
	withBoth struct {
		withFlush
		http.Hijacker
	}
	withReadFrom struct {
		withFlush
		io.ReaderFrom
	}
	likeHTTP1 struct {
		withBoth
		io.ReaderFrom
		http.CloseNotifier
	}
	likeHTTP2 struct {
		withFlush
		http.Pusher
		http.CloseNotifier
	}
	odd struct {
		withHijack
		http.Pusher
		http.CloseNotifier
		io.ReaderFrom
	}
	everything struct {
		likeHTTP1
		http.Pusher
	}
)

// The wrapper has the interfaces of the usual writers, exactly. It never makes
// one up, and never loses Flusher or Hijacker.
func TestC1_WriterInterfaces(t *testing.T) {
	base := plain{httptest.NewRecorder()}
	flush := withFlush{plain: base}
	both := withBoth{withFlush: flush}
	http1 := likeHTTP1{withBoth: both}
	for _, w := range []http.ResponseWriter{
		base, flush, withHijack{plain: base}, both, withReadFrom{withFlush: flush}, http1, likeHTTP2{withFlush: flush},
	} {
		require.Equal(t, interfaces(w), interfaces(httpmw.Watch(w)), "%T", w)
	}
	for _, w := range []http.ResponseWriter{odd{}, everything{likeHTTP1: http1}} {
		has := interfaces(w)
		for name, wrapped := range interfaces(httpmw.Watch(w)) {
			require.True(t, has[name] || !wrapped, "%T: %s", w, name)
			if name == "Flusher" || name == "Hijacker" {
				require.Equal(t, has[name], wrapped, "%T: %s", w, name)
			}
		}
	}
}

// interfaces are the optional interfaces of w.
func interfaces(w http.ResponseWriter) map[string]bool {
	has := map[string]bool{}
	_, has["Flusher"] = w.(http.Flusher)
	_, has["Hijacker"] = w.(http.Hijacker)
	_, has["ReaderFrom"] = w.(io.ReaderFrom)
	_, has["Pusher"] = w.(http.Pusher)
	_, has["CloseNotifier"] = w.(http.CloseNotifier)
	return has
}

func TestWriterIsNotWrappedForRates(t *testing.T) {
	var got http.ResponseWriter
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { got = w })
	w := httptest.NewRecorder()
	limiter := &rated{*admitting()}
	httpmw.Limit(limiter, key("k"))(h).ServeHTTP(w, get())
	require.True(t, got == http.ResponseWriter(w))
	httpmw.Limit(newSlots(1), key("k"))(h).ServeHTTP(w, get())
	require.False(t, got == http.ResponseWriter(w))
}

// An event reaches the client before the handler returns.
func TestServerSentEvents(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			received := make(chan struct{})
			url, client := start(t, protocol, httpmw.Limit(newSlots(1), key("k"))(
				http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					fmt.Fprint(w, "data: 1\n\n")
					w.(http.Flusher).Flush()
					select {
					case <-received:
					case <-r.Context().Done():
					}
				})))
			resp, err := client.Get(url)
			require.NoError(t, err)
			defer resp.Body.Close()
			line, err := bufio.NewReader(resp.Body).ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "data: 1\n", line)
			close(received)
		})
	}
}

// A handler answers one half of a request before it reads the other.
func TestFullDuplex(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			url, client := start(t, protocol, httpmw.Limit(newSlots(1), key("k"))(
				http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					c := http.NewResponseController(w)
					c.EnableFullDuplex()
					in := bufio.NewReader(r.Body)
					for {
						line, err := in.ReadString('\n')
						if err != nil {
							return
						}
						io.WriteString(w, line)
						c.Flush()
					}
				})))
			body, in := io.Pipe()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
			require.NoError(t, err)
			go in.Write([]byte("one\n"))
			resp, err := client.Do(r)
			require.NoError(t, err)
			out := bufio.NewReader(resp.Body)
			for _, word := range []string{"one\n", "two\n", "three\n"} {
				if word != "one\n" {
					_, err = in.Write([]byte(word))
					require.NoError(t, err)
				}
				line, err := out.ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, word, line)
			}
			require.NoError(t, in.Close())
			require.NoError(t, resp.Body.Close())
		})
	}
}

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
func TestHijackedConnectionHoldsItsSlot(t *testing.T) {
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

// tapped counts what goes through ReadFrom.
type tapped struct {
	*httptest.ResponseRecorder
	n int64
}

func (t *tapped) ReadFrom(r io.Reader) (n int64, err error) {
	n, err = io.Copy(t.ResponseRecorder, r)
	t.n += n
	return n, err
}

func TestReadFromGoesThrough(t *testing.T) {
	w := &tapped{ResponseRecorder: httptest.NewRecorder()}
	l := newSlots(1)
	httpmw.Limit(l, key("k"))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.Copy(w, io.LimitReader(strings.NewReader("12345"), 5))
	})).ServeHTTP(w, get())
	require.EqualValues(t, 5, w.n)
	require.Equal(t, "12345", w.Body.String())
}

// A connection that is dropped without Close frees its slot in the end.
func TestDroppedConnection(t *testing.T) {
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
		return l.released(algo.Ignored) == 1 && l.inFlight() == 0
	}, 10*time.Second, 5*time.Millisecond)
}

// Over TLS the connection is another type, and the slot follows it too.
func TestHijackOverTLS(t *testing.T) {
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
