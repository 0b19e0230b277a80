package main

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
)

// echoing is an upstream that takes over the connection and sends a frame for each line.
func echoing(w http.ResponseWriter, _ *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	for {
		if rw.Flush() != nil {
			return
		}
		line, err := rw.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = fmt.Fprintf(rw, "\x81%c%s", len(line), line)
	}
}

// webSocket opens one.
func (p *process) webSocket() (net.Conn, *bufio.Reader) {
	p.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.front, "http://"))
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	require.NoError(p.t, err)
	require.NoError(p.t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	require.NoError(p.t, err)
	require.Equal(p.t, 101, resp.StatusCode)
	return conn, r
}

func ping(t *testing.T, conn net.Conn, r *bufio.Reader) {
	t.Helper()
	_, err := io.WriteString(conn, "ping\n")
	require.NoError(t, err)
	frame := make([]byte, 7)
	_, err = io.ReadFull(r, frame)
	require.NoError(t, err)
	require.Equal(t, "\x81\x05ping\n", string(frame))
}

// WebSockets have the time of the drain, and then a close frame. One that ends by itself
// is not waited for any longer.
func TestWebSocketsDrain(t *testing.T) {
	p := start(t, "timeouts: {unready: 0s, drain: 1s}\nroutes: [{pattern: /, upstream: '"+upstream(t, echoing)+"', in_flight: 9, limits: [{name: a, key: ip, limit: 100/h}]}]\n")
	conn, r := p.webSocket()
	ping(t, conn, r)
	begun := time.Now()
	p.stop()
	time.Sleep(300 * time.Millisecond)
	ping(t, conn, r)
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "\x88\x02\x03\xe9", string(rest), "going away")
	require.NoError(t, conn.Close())
	<-p.ended
	require.GreaterOrEqual(t, time.Since(begun), time.Second)
	require.Contains(t, p.log.String(), "requests=0 upgraded=1")

	p = start(t, "timeouts: {unready: 0s, drain: 20s}\nroutes: [{pattern: /, upstream: '"+upstream(t, echoing)+"'}]\n")
	conn, r = p.webSocket()
	p.stop()
	ping(t, conn, r)
	require.NoError(t, conn.Close())
	<-p.ended
	require.NotContains(t, p.log.String(), "drain timed out")
}
