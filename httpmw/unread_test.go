package httpmw_test

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// The bound that the guide names: clients that read nothing of a large answer hold the
// slots of a fixed limit until the server's WriteTimeout, and no longer.
func TestUnreadAnswersHoldSlotsUntilTheWriteTimeout(t *testing.T) {
	const slots = 10
	capacity := algo.Must(adaptive.New(adaptive.Fixed(slots)))
	defer capacity.Close()
	big := make([]byte, 1<<20)
	handler := httpmw.Limit(capacity, keyfunc.Global())(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 64 {
			if r.URL.Path == "/big" {
				if _, err := w.Write(big); err != nil {
					return
				}
			}
		}
	}))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := &http.Server{Handler: handler, WriteTimeout: 500 * time.Millisecond}
	go func() { _ = srv.Serve(ln) }()
	defer srv.Close()
	for range slots {
		conn, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096))
		_, err = io.WriteString(conn, "GET /big HTTP/1.1\r\nHost: h\r\n\r\n")
		require.NoError(t, err)
	}
	status := func() int {
		resp, err := http.Get("http://" + ln.Addr().String() + "/")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	defer http.DefaultClient.CloseIdleConnections()
	require.Eventually(t, func() bool { return status() == http.StatusServiceUnavailable }, 10*time.Second, time.Millisecond, "all slots are taken")
	require.Eventually(t, func() bool { return status() == http.StatusOK }, 10*time.Second, time.Millisecond)
	for range 50 {
		require.Eventually(t, func() bool { return status() == http.StatusOK }, 10*time.Second, time.Millisecond)
	}
}
