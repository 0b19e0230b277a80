package httpmw_test

import (
	"bufio"
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
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
)

// long is longer than any test.
const long = time.Hour

const (
	partOfABody = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nbegin"
	wholeBody   = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nbegin"
	lastRequest = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
)

// delaying admits the second request after a long delay.
func delaying(t *testing.T) algo.Limiter {
	return bucket(t, algo.PerHour(1), algo.Burst(1), algo.MaxWait(2*long))
}

// queueing has one slot and a queue.
func queueing(t *testing.T) algo.Limiter {
	l, err := adaptive.New(adaptive.Fixed(1), adaptive.WithQueue(adaptive.FIFO(10, long)))
	require.NoError(t, err)
	return l
}

// pausing admits each request after a short delay.
func pausing(t *testing.T) algo.Limiter {
	l := bucket(t, algo.Every(100*time.Millisecond), algo.Burst(1), algo.MaxWait(long))
	lease, err := l.Acquire(t.Context(), "k", 1)
	require.NoError(t, err)
	require.True(t, lease.Allowed)
	return l
}

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

// answerTo sends text and returns the answer, while the connection stays open.
func answerTo(t *testing.T, base, text string) *http.Response {
	resp, _ := answerAndRest(t, base, text)
	return resp
}

// answerAndRest sends text and returns the answer and the connection.
func answerAndRest(t *testing.T, base, text string) (*http.Response, net.Conn) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	return resp, conn
}

// A client that hangs up while its request waits is noticed at once, unless a part of the body
// is unread.
func TestHangUpsWhileWaiting(t *testing.T) {
	for _, limiter := range []func(*testing.T) algo.Limiter{delaying, queueing} {
		for name, request := range map[string]string{
			"no body":     "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
			"a body read": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nwhole",
		} {
			for constructor, limit := range map[string]func(algo.Limiter, ...httpmw.Option) func(http.Handler) http.Handler{
				"Limit": func(l algo.Limiter, opts ...httpmw.Option) func(http.Handler) http.Handler {
					return httpmw.Limit(l, key(""), opts...)
				},
				"Limits": func(l algo.Limiter, opts ...httpmw.Option) func(http.Handler) http.Handler {
					return httpmw.Limits([]httpmw.Policy{
						{Name: "a", Limiter: l, Key: key("")}, {Name: "b", Limiter: bucket(t, algo.PerHour(100)), Key: key("")},
					}, opts...)
				},
			} {
				l := limiter(t)
				t.Run(fmt.Sprintf("%T/%s/%s", l, constructor, name), func(t *testing.T) {
					lease, err := l.Acquire(t.Context(), "", 1)
					require.NoError(t, err)
					defer lease.Release(algo.Succeeded)
					events := make(chan telemetry.Event, 10)
					limited := limit(l, httpmw.WithObserver(func(e telemetry.Event) { events <- e }))(unreachable(t))
					base, _ := start(t, "HTTP/1.1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						_, _ = io.Copy(io.Discard, r.Body)
						limited.ServeHTTP(w, r)
					}))
					conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
					require.NoError(t, err)
					_, err = io.WriteString(conn, request)
					require.NoError(t, err)
					select {
					case e := <-events:
						t.Fatal("it did not wait: ", e.Result)
					case <-time.After(50 * time.Millisecond):
					}
					conn.Close()
					select {
					case e := <-events:
						require.Equal(t, telemetry.Canceled, e.Result)
					case <-time.After(10 * time.Second):
						t.Error("the hang-up was not noticed")
					}
				})
			}
		}
	}
}

// The body is whole after a wait, however it arrives.
func TestBodyAfterAWait(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 5000, 64 << 10, 1 << 20} {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprint(size, slow), func(t *testing.T) {
				body := strings.Repeat("0123456789abcdef", size/16+1)[:size]
				base, client := start(t, "HTTP/1.1", httpmw.Limit(pausing(t), key("k"))(http.HandlerFunc(
					func(w http.ResponseWriter, r *http.Request) {
						got, err := io.ReadAll(r.Body)
						if assertNoError(t, err) && string(got) != body {
							t.Errorf("got %d bytes", len(got))
						}
						assertNoError(t, r.Body.Close())
						_, err = r.Body.Read(make([]byte, 1))
						if err == nil {
							t.Error("read after Close")
						}
					})))
				var reader io.Reader = strings.NewReader(body)
				if slow {
					pr, pw := io.Pipe()
					go func() {
						_, _ = io.WriteString(pw, body[:size/2])
						time.Sleep(200 * time.Millisecond)
						_, _ = io.WriteString(pw, body[size/2:])
						pw.Close()
					}()
					reader = pr
				}
				for range 2 {
					resp, err := client.Post(base, "text/plain", reader)
					require.NoError(t, err)
					resp.Body.Close()
					require.Equal(t, http.StatusOK, resp.StatusCode)
					reader = strings.NewReader(body)
				}
			})
		}
	}
}

// A handler gets the arrived part of the body although the client sends no
// more, and a handler that reads nothing answers at once.
func TestAnswerWithinTheBody(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"reads": func(w http.ResponseWriter, r *http.Request) {
			buf := make([]byte, 5)
			_, err := io.ReadFull(r.Body, buf)
			assertNoError(t, err)
			assertNoError(t, http.NewResponseController(w).EnableFullDuplex())
			_, _ = w.Write(buf)
		},
		"closes":  func(w http.ResponseWriter, r *http.Request) { r.Body.Close(); io.WriteString(w, "begin") },
		"ignores": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "begin") },
	} {
		t.Run(name, func(t *testing.T) {
			base, _ := start(t, "HTTP/1.1", httpmw.Limit(pausing(t), key("k"))(h))
			got := answerTo(t, base, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nbegin")
			require.Equal(t, http.StatusOK, got.StatusCode)
			body := make([]byte, 5)
			_, err := io.ReadFull(got.Body, body)
			require.NoError(t, err)
			require.Equal(t, "begin", string(body))
		})
	}
}

// A denial waits for the body of its request as any answer of net/http: not beyond 256 KiB, and
// not if the handler of denials closes the connection.
func TestDenialWithinTheBody(t *testing.T) {
	denied := denying(algo.Quota, time.Second)
	closing, _ := start(t, "HTTP/1.1", httpmw.Limit(denied, key("k"), httpmw.WithDenied(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusTooManyRequests)
		})))(unreachable(t)))
	base, client := start(t, "HTTP/1.1", httpmw.Limit(denied, key("k"))(unreachable(t)))
	for _, got := range []*http.Response{
		answerTo(t, base, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nbegin"),
		answerTo(t, closing, partOfABody),
		answerTo(t, closing, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n"),
	} {
		require.Equal(t, http.StatusTooManyRequests, got.StatusCode)
		require.True(t, got.Close, "the client does not use the connection again")
	}
	got := answerTo(t, base, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
	require.Equal(t, http.StatusTooManyRequests, got.StatusCode, "the client is not asked for the body")
	for _, whole := range []string{"Content-Length: 5\r\n\r\nbegin", "Transfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n0\r\n\r\n"} {
		got = answerTo(t, base, "POST / HTTP/1.1\r\nHost: a\r\n"+whole)
		require.Equal(t, http.StatusTooManyRequests, got.StatusCode)
		require.False(t, got.Close)
	}
	for _, size := range []int{10, 100_000, 4 << 20} {
		var resp *http.Response
		require.Eventually(t, func() (ok bool) {
			// A client that sends for longer than the server lingers may be cut off
			// before it has read the answer (RFC 9112, section 9.6).
			var err error
			resp, err = client.Post(base, "text/plain", strings.NewReader(strings.Repeat("x", size)))
			return err == nil
		}, 20*time.Second, time.Millisecond)
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
	}
}

// TestOuterHandlerAnswersAfterASlowBody: a handler around the middleware still writes the
// answer, after one that panics or leaves the answer to it.
func TestOuterHandlerAnswersAfterASlowBody(t *testing.T) {
	t.Parallel()
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
			})
		})
	}
}

// TestHijackWithinASlowBody: the connection is the handler's alone.
func TestHijackWithinASlowBody(t *testing.T) {
	t.Parallel()
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
		require.Equal(t, "beginxxxxx <nil>", answers(t, limited, partOfABody, "", strings.Repeat("x", 995)))
	})
}

// TestDeniedHandlerGetsTheBody: also after a wait in a queue.
func TestDeniedHandlerGetsTheBody(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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

// TestSlowDeniedBodiesHoldNoSlot: a client that was denied, and goes on sending its body
// slowly, holds no slot of a limit further out.
func TestSlowDeniedBodiesHoldNoSlot(t *testing.T) {
	for name, opts := range map[string][]httpmw.Option{
		"problem": nil,
		"ignores": {httpmw.WithDenied(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))},
	} {
		t.Run(name, func(t *testing.T) {
			slots := algo.Must(adaptive.New(adaptive.Fixed(2)))
			opts = append(opts, httpmw.WithSkip(func(r *http.Request) bool { return r.Method == http.MethodGet }))
			quota := httpmw.Limit(denying(algo.Quota, time.Second), key("k"), opts...)
			base, client := start(t, "HTTP/1.1", httpmw.Limit(slots, key("k"))(quota(ok)))
			for _, request := range []string{partOfABody, partOfABody, partOfABody,
				"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n"} {
				conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
				require.NoError(t, err)
				defer conn.Close()
				_, err = io.WriteString(conn, request)
				require.NoError(t, err)
			}
			require.Eventually(t, func() bool {
				resp, err := client.Get(base)
				require.NoError(t, err)
				_ = resp.Body.Close()
				return resp.StatusCode == http.StatusOK && slots.Explain().InFlight == 0
			}, 10*time.Second, time.Millisecond)
		})
	}
}
