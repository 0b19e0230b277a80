package httpmw_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
)

// TestC1_ConnectIsWork: a request counts as in flight although its client calls it CONNECT, which
// handlers that do not look at the method take for any other.
func TestC1_ConnectIsWork(t *testing.T) {
	l := algo.Must(adaptive.New(strategy.Vegas(), adaptive.WithLimits(1, 1)))
	begun, end := make(chan struct{}, 2), make(chan struct{})
	url, client := start(t, "HTTP/1.1", httpmw.Limit(l, key("k"))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-end
	})))
	defer close(end)
	conn, err := attack(url, "CONNECT /work HTTP/1.1\r\nHost: a\r\n\r\n")
	require.NoError(t, err)
	defer conn.Close()
	<-begun
	status := make(chan int, 1)
	go func() { s, _ := visit(client, url); status <- s }()
	select {
	case <-begun:
		require.Fail(t, "two at work")
	case s := <-status:
		require.Equal(t, http.StatusServiceUnavailable, s)
	}
}

// A tunnel over a connection that its handler has taken over holds no slot.
func TestTunnelHoldsNoSlot(t *testing.T) {
	l := algo.Must(adaptive.New(strategy.Vegas(), adaptive.WithLimits(1, 1)))
	url, _ := start(t, "HTTP/1.1", httpmw.Limit(l, key("k"))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err == nil {
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
			_, _ = rw.ReadByte()
		}
	})))
	for range 3 {
		conn, err := attack(url, "CONNECT /tunnel HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
		defer func(c net.Conn) { _ = c.Close() }(conn)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
		resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
}
