package httpmw_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/hints"
)

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
	withPush struct { // http.TimeoutHandler
		plain
		http.Pusher
	}
	likeChi struct { // chi's middleware.Logger over HTTP/1.1
		withBoth
		io.ReaderFrom
	}
	likeChi2 struct { // and over HTTP/2
		withFlush
		http.Pusher
	}
	likeCompress struct { // chi's middleware.Compress
		withBoth
		http.Pusher
	}
	likeGin struct { // gin, negroni
		withBoth
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
		withPush{plain: base}, likeChi{withBoth: both}, likeChi2{withFlush: flush}, likeCompress{withBoth: both}, likeGin{withBoth: both},
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

// tapped counts the bytes that go through ReadFrom.
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

// Handlers that still ask for http.CloseNotifier, and http.Pusher, reach the
// server through the wrapper.
func TestOldInterfaces(t *testing.T) {
	base := &old{ResponseRecorder: httptest.NewRecorder(), notes: make(chan bool)}
	w := httpmw.Watch(base)
	require.Equal(t, (<-chan bool)(base.notes), w.(http.CloseNotifier).CloseNotify())
	require.ErrorIs(t, w.(http.Pusher).Push("/x", nil), http.ErrNotSupported)
	require.Equal(t, "/x", base.pushed)
}

type old struct {
	*httptest.ResponseRecorder
	notes  chan bool
	pushed string
}

func (o *old) CloseNotify() <-chan bool { return o.notes }

func (o *old) Push(target string, _ *http.PushOptions) error {
	o.pushed = target
	return http.ErrNotSupported
}

// Over HTTP/1.1 a body above the bound of http.MaxBytesReader is answered at once, and not
// after the rest of it.
func TestTooLargeBodiesAreAnsweredAtOnce(t *testing.T) {
	handlers := map[string]http.Handler{
		"MaxBytesReader": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 10)); err != nil {
				http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			}
		}),
		"MaxBytesHandler": http.MaxBytesHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			}
		}), 10),
	}
	for name, h := range handlers {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(httpmw.Limit(newSlots(1), key("k"))(h))
			defer server.Close()
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n"+strings.Repeat("a", 50))
			require.NoError(t, err)
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
			require.True(t, resp.Close)
		})
	}
}

// Trailers of a request that its head does not announce, and the path values of a route
// further in, are the same with and without the middleware.
func TestCopiesOfRequestsShareTheirState(t *testing.T) {
	for name, mw := range map[string]func(http.Handler) http.Handler{
		"none":       func(h http.Handler) http.Handler { return h },
		"in flight":  httpmw.Limit(newSlots(9), key("k")),
		"with lease": httpmw.Limit(admitting(), key("k"), httpmw.WithLeaseInContext()),
		"both":       httpmw.Limit(newSlots(9), key("k"), httpmw.WithLeaseInContext()),
		"unlimited":  httpmw.Limit(admitting(), key("k"), httpmw.WithLeaseInContext(), httpmw.WithSkip(func(*http.Request) bool { return true })),
		"priority":   hints.Priority(func(*http.Request) bool { return true }),
	} {
		t.Run(name, func(t *testing.T) {
			var trailer, id, rest, pattern string
			mux := http.NewServeMux()
			mux.HandleFunc("POST /items/{id}/{rest...}", func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				trailer = r.Trailer.Get("X-Sum")
			})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mw(mux).ServeHTTP(w, r)
				id, rest, pattern = r.PathValue("id"), r.PathValue("rest"), r.Pattern
			}))
			defer server.Close()
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, "POST /items/7/a/b HTTP/1.1\r\nHost: h\r\nPriority: u=1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 42\r\n\r\n")
			require.NoError(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, []string{"42", "7", "a/b", "POST /items/{id}/{rest...}"}, []string{trailer, id, rest, pattern})
		})
	}
}

// HTTP/3 upgrades a CONNECT through interfaces of its own packages, which a wrapper cannot
// have.
func TestConnectOverHTTP3(t *testing.T) {
	r := get()
	r.Method, r.ProtoMajor, r.ProtoMinor = http.MethodConnect, 3, 0
	w := withFlush{plain: plain{httptest.NewRecorder()}}
	l := newSlots(1)
	httpmw.Limit(l, key("k"))(http.HandlerFunc(func(got http.ResponseWriter, _ *http.Request) {
		require.True(t, got == http.ResponseWriter(w))
	})).ServeHTTP(w, r)
}
