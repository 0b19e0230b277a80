package httpmw_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
)

const (
	partOfABody = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nbegin"
	wholeBody   = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nbegin"
	lastRequest = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
)

// answers sends the parts one after the other on one connection of a server of h, and returns
// everything that it answers. It fails if the server logs anything.
func answers(t *testing.T, h http.Handler, parts ...string) string {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	var lines lockedBuilder
	server.Config.ErrorLog = log.New(&lines, "", 0)
	server.Start()
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	for i, part := range parts {
		if i > 0 {
			time.Sleep(200 * time.Millisecond)
		}
		_, _ = io.WriteString(conn, part) // the server may have closed the connection
	}
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	all, _ := io.ReadAll(conn)
	require.Empty(t, lines.String())
	return string(all)
}

// eachWay runs h as the handler of a denial, and as one whose request has waited.
func eachWay(t *testing.T, h http.HandlerFunc, run func(t *testing.T, limited http.Handler)) {
	t.Run("denied", func(t *testing.T) {
		run(t, httpmw.Limit(denying(algo.Quota, time.Second), key("k"), httpmw.WithDenied(h))(unreachable(t)))
	})
	t.Run("waited", func(t *testing.T) { run(t, httpmw.Limit(pausing(t), key("k"))(h)) })
}

// TestOuterHandlerAnswersAfterASlowBody: a handler around the middleware still writes the
// answer, after one that panics or leaves the answer to it.
func TestOuterHandlerAnswersAfterASlowBody(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"panics":  func(http.ResponseWriter, *http.Request) { panic("of the handler") },
		"returns": func(http.ResponseWriter, *http.Request) {},
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, h, func(t *testing.T, limited http.Handler) {
				outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer func() {
						_ = recover()
						w.WriteHeader(http.StatusTeapot)
					}()
					if r.Method == http.MethodPost {
						limited.ServeHTTP(w, r)
					}
				})
				got := answers(t, outer, partOfABody, strings.Repeat("x", 995), lastRequest)
				require.True(t, strings.HasPrefix(got, "HTTP/1.1 418"), got)
				require.Contains(t, got, "Connection: close")
			})
		})
	}
}

// TestHijackWithinASlowBody: the connection is the handler's alone.
func TestHijackWithinASlowBody(t *testing.T) {
	hijacks := func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if !assertNoError(t, err) {
			return
		}
		go func() {
			defer conn.Close()
			b := make([]byte, 10)
			_, err := io.ReadFull(rw, b)
			_, _ = fmt.Fprintf(conn, "%s %v", b, err)
		}()
	}
	eachWay(t, hijacks, func(t *testing.T, limited http.Handler) {
		require.Equal(t, "xxxxxxxxxx <nil>", answers(t, limited, partOfABody, "", strings.Repeat("x", 995)))
	})
}

// TestDeniedHandlerGetsTheBody: also the part that was read ahead in a queue.
func TestDeniedHandlerGetsTheBody(t *testing.T) {
	slots, err := adaptive.New(adaptive.Fixed(1), adaptive.WithQueue(adaptive.FIFO(10, 300*time.Millisecond)))
	require.NoError(t, err)
	lease, err := slots.Acquire(t.Context(), "", 1)
	require.NoError(t, err)
	defer lease.Release(algo.Succeeded)
	echoes := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %v %v", b, err, r.Context().Err())
	})
	for name, limited := range map[string]http.Handler{
		"Limit": httpmw.Limit(slots, key("k"), httpmw.WithDenied(echoes))(unreachable(t)),
		"Limits": httpmw.Limits([]httpmw.Policy{{Name: "a", Limiter: slots, Key: key("k")},
			{Name: "b", Limiter: bucket(t, algo.PerHour(100)), Key: key("k")}}, httpmw.WithDenied(echoes))(unreachable(t)),
	} {
		t.Run(name, func(t *testing.T) {
			for _, parts := range [][]string{{"01234", "56789"}, {"01234", "", "", "56789"}, {"0123456789"}} {
				parts[0] = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 10\r\n\r\n" + parts[0]
				require.Contains(t, answers(t, limited, parts...), "0123456789 <nil> <nil>")
			}
		})
	}
}

// TestShortenedBody: a handler around the middleware that reads no more than a part of each
// body breaks no later request.
func TestShortenedBody(t *testing.T) {
	h := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }
	eachWay(t, h, func(t *testing.T, limited http.Handler) {
		got := answers(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				_, _ = io.WriteString(w, "second")
				return
			}
			r.Body = io.NopCloser(io.LimitReader(r.Body, 3))
			limited.ServeHTTP(w, r)
		}), wholeBody, "", lastRequest)
		require.True(t, strings.HasSuffix(got, "second"), got)
	})
}

// slowDeadline is a writer in a process that has no processor for a while.
type slowDeadline struct{ http.ResponseWriter }

func (w slowDeadline) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w slowDeadline) SetReadDeadline(d time.Time) error {
	err := http.NewResponseController(w.ResponseWriter).SetReadDeadline(d)
	if !d.IsZero() {
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

// TestDeadlineOfTheRestOfABody: it ends the context of no later request.
func TestDeadlineOfTheRestOfABody(t *testing.T) {
	limited := httpmw.Limit(denying(algo.Quota, time.Second), key("k"))(unreachable(t))
	got := answers(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = fmt.Fprint(w, "second: ", r.Context().Err())
			return
		}
		_, err := io.Copy(io.Discard, r.Body)
		assertNoError(t, err)
		limited.ServeHTTP(slowDeadline{w}, r)
	}), wholeBody, "", lastRequest)
	require.NotContains(t, got, "canceled")
	require.Contains(t, got, "Connection: close")
}

// TestDenialWithoutABody: a handler around the middleware has taken the body away.
func TestDenialWithoutABody(t *testing.T) {
	limited := httpmw.Limit(denying(algo.Quota, time.Second), key("k"))(unreachable(t))
	base, client := start(t, "HTTP/1.1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = nil
		limited.ServeHTTP(w, r)
	}))
	resp, err := client.Post(base, "text/plain", strings.NewReader("body"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
}
