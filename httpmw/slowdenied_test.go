package httpmw_test

import (
	"io"
	"net/http"
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
			for range 5 {
				got, after := answerAndRest(t, base, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nbegin")
				require.Equal(t, http.StatusTooManyRequests, got.StatusCode)
				require.Eventually(t, func() bool {
					resp, err := client.Get(base)
					require.NoError(t, err)
					_ = resp.Body.Close()
					return resp.StatusCode == http.StatusOK && slots.Explain().InFlight == 0
				}, 10*time.Second, time.Millisecond)
				_, err = io.Copy(io.Discard, got.Body)
				require.NoError(t, err)
				_, err = after.ReadByte()
				require.Equal(t, io.EOF, err, "the connection serves no other request")
			}
		})
	}
	require.Equal(t, "begin", string(begun), "the handler of denials gets the body")
}
