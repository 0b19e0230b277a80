package httpmw_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
)

// TestSlowDeniedBodiesHoldNoSlot: a client that was denied, and goes on sending its body
// slowly, holds a slot of a limit further out no longer than the handler waits for the rest.
func TestSlowDeniedBodiesHoldNoSlot(t *testing.T) {
	begun := make([]byte, 5)
	for name, denied := range map[string]http.HandlerFunc{
		"problem": nil,
		"ignores": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"reads": func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadFull(r.Body, begun)
			assertNoError(t, err)
			w.WriteHeader(http.StatusTooManyRequests)
		},
	} {
		t.Run(name, func(t *testing.T) {
			slots, err := adaptive.New(adaptive.Fixed(2))
			require.NoError(t, err)
			opts := []httpmw.Option{httpmw.WithSkip(func(r *http.Request) bool { return r.Method == http.MethodGet })}
			if denied != nil {
				opts = append(opts, httpmw.WithDenied(denied))
			}
			quota := httpmw.Limit(denying(algo.Quota, time.Second), key("k"), opts...)
			ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
			base, client := start(t, "HTTP/1.1", httpmw.Limit(slots, key("k"))(quota(ok)))
			for i := range 6 {
				begin, rest := "Content-Length: 1000\r\n\r\nbegin", strings.Repeat("x", 995)
				if i%2 == 0 {
					begin, rest = "Transfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n", "5\r\nagain\r\n0\r\n\r\n"
				}
				got, conn := answerAndRest(t, base, "POST / HTTP/1.1\r\nHost: a\r\n"+begin)
				require.Equal(t, http.StatusTooManyRequests, got.StatusCode)
				require.Eventually(t, func() bool {
					resp, err := client.Get(base)
					require.NoError(t, err)
					_ = resp.Body.Close()
					return resp.StatusCode == http.StatusOK && slots.Explain().InFlight == 0
				}, 10*time.Second, time.Millisecond)
				_, err = io.Copy(io.Discard, got.Body)
				require.NoError(t, err)
				for _, part := range []string{rest[:3], rest[3:]} {
					time.Sleep(10 * time.Millisecond)
					_, err = io.WriteString(conn, part)
					require.NoError(t, err, "the connection ends after the response has arrived")
				}
				_, err = conn.Read(make([]byte, 1))
				require.Equal(t, io.EOF, err, "the connection serves no other request")
			}
		})
	}
	require.Equal(t, "begin", string(begun), "the handler of denials gets the body")
}

// TestDeniedExpectations: a client that waits for 100 Continue, is denied, and then neither
// sends its body nor hangs up, keeps its connection for a few seconds. HTTP/1.0 knows no
// expectations: a denial does not wait for the body.
func TestDeniedExpectations(t *testing.T) {
	t.Parallel()
	base, _ := start(t, "HTTP/1.1", httpmw.Limit(denying(algo.Quota, time.Second), key("k"))(unreachable(t)))
	for name, request := range map[string]string{
		"length":  "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n",
		"chunked": "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
		"old":     "POST / HTTP/1.0\r\nConnection: keep-alive\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\nbegin",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, conn := answerAndRest(t, base, request)
			require.Equal(t, http.StatusTooManyRequests, got.StatusCode)
			_, err := io.Copy(io.Discard, got.Body)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, conn)
			require.NoError(t, err, "the server closes the connection")
		})
	}
}
