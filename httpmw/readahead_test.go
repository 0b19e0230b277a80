package httpmw_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
)

// long is longer than any test.
const long = time.Hour

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

// A client that hangs up while its request waits is noticed at once, whatever
// has been sent of the body.
func TestHangUpsWhileWaiting(t *testing.T) {
	for _, limiter := range []func(*testing.T) algo.Limiter{delaying, queueing} {
		for name, request := range map[string]string{
			"no body":        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
			"whole body":     "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nwhole",
			"part of a body": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\npart",
			"chunks":         "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n",
			"nothing yet":    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
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
					events := make(chan httpmw.Event, 10)
					base, _ := start(t, "HTTP/1.1", limit(l, httpmw.WithObserver(func(e httpmw.Event) { events <- e }))(unreachable(t)))
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
						require.Equal(t, httpmw.Canceled, e.Result)
					case <-time.After(10 * time.Second):
						t.Error("the hang-up was not noticed")
					}
				})
			}
		}
	}
}

// pausing admits each request after a short delay, as long as it is read ahead.
func pausing(t *testing.T) algo.Limiter {
	l := bucket(t, algo.Every(100*time.Millisecond), algo.Burst(1), algo.MaxWait(long))
	lease, err := l.Acquire(t.Context(), "k", 1)
	require.NoError(t, err)
	require.True(t, lease.Allowed)
	return l
}

// The body is whole after a wait, whatever part of it was read ahead.
func TestBodyAfterAWait(t *testing.T) {
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

// A client that waits for 100 Continue is not asked for its body before the answer is known, or
// gets tired of waiting.
func TestExpectationInAQueue(t *testing.T) {
	for patience, status := range map[time.Duration]int{
		100 * time.Millisecond: http.StatusServiceUnavailable, 1500 * time.Millisecond: http.StatusContinue,
	} {
		t.Run(patience.String(), func(t *testing.T) {
			t.Parallel()
			l := algo.Must(adaptive.New(adaptive.Fixed(1), adaptive.WithQueue(adaptive.FIFO(10, patience))))
			hold, err := l.Acquire(t.Context(), "", 1)
			require.NoError(t, err)
			t.Cleanup(func() { hold.Release(algo.Ignored) }) // after the server has ended
			base, _ := start(t, "HTTP/1.1", httpmw.Limit(l, key(""))(unreachable(t)))
			got := answerTo(t, base, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
			require.Equal(t, status, got.StatusCode)
		})
	}
}

// A denial does not wait for the body of its request.
func TestDenialWithinTheBody(t *testing.T) {
	base, client := start(t, "HTTP/1.1", httpmw.Limit(denying(algo.Quota, time.Second), key("k"))(unreachable(t)))
	for _, size := range []int{1000, 1_000_000} {
		got := answerTo(t, base, fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\nbegin", size))
		require.Equal(t, http.StatusTooManyRequests, got.StatusCode)
		require.True(t, got.Close, "the client does not use the connection again")
	}
	got := answerTo(t, base, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n")
	require.Equal(t, http.StatusTooManyRequests, got.StatusCode)
	require.True(t, got.Close)
	got = answerTo(t, base, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
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
