package proxy

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Upgraded are the connections that have changed their protocol: a server does not wait
// for them when it shuts down.
type Upgraded struct {
	mu    sync.Mutex
	conns map[*upgradedConn]struct{}
	none  chan struct{} // closed when there are none
}

// follow counts the connections that next takes over.
func (u *Upgraded) follow(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := r.Header.Get("Upgrade")
		if kind == "" {
			next.ServeHTTP(w, r)
			return
		}
		h := &hijacker{ResponseWriter: w, upgraded: u, webSocket: strings.EqualFold(kind, "websocket")}
		defer func() {
			if h.conn != nil {
				u.change(h.conn, false)
			}
		}()
		next.ServeHTTP(h, r)
	})
}

// hijacker notes that a connection is taken over.
type hijacker struct {
	http.ResponseWriter
	upgraded  *Upgraded
	webSocket bool
	conn      *upgradedConn
}

// Unwrap returns the writer beneath.
func (h *hijacker) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// Hijack takes the connection over.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return c, rw, err
	}
	h.conn = &upgradedConn{Conn: c, webSocket: h.webSocket}
	h.upgraded.change(h.conn, true)
	return h.conn, rw, nil
}

func (u *Upgraded) change(c *upgradedConn, open bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if open {
		if len(u.conns) == 0 {
			u.conns, u.none = map[*upgradedConn]struct{}{}, make(chan struct{})
		}
		u.conns[c] = struct{}{}
	} else if delete(u.conns, c); len(u.conns) == 0 {
		close(u.none)
	}
}

// Wait returns when the last one has ended, or ctx has, with how many are open.
func (u *Upgraded) Wait(ctx context.Context) int {
	u.mu.Lock()
	none, open := u.none, len(u.conns)
	u.mu.Unlock()
	if open == 0 {
		return 0
	}
	select {
	case <-none:
	case <-ctx.Done():
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.conns)
}

// farewell is how long a client may take to answer that the gateway goes away.
const farewell = time.Second

// Close ends them. A client of a WebSocket gets a close frame first.
func (u *Upgraded) Close() {
	u.mu.Lock()
	open := make([]*upgradedConn, 0, len(u.conns))
	for c := range u.conns {
		open = append(open, c)
	}
	u.mu.Unlock()
	var all sync.WaitGroup
	for _, c := range open {
		all.Go(c.goAway)
	}
	all.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	u.Wait(ctx)
	for _, c := range open {
		_ = c.Close()
	}
}

// upgradedConn is a client's connection, and how far the frame that is sent on it is.
type upgradedConn struct {
	net.Conn
	webSocket bool

	mu     sync.Mutex
	head   []byte // of the frame, until it is complete
	left   uint64 // bytes of its payload
	ending bool
}

// Write sends bytes to the client.
func (c *upgradedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Write(p)
	if c.webSocket {
		c.sent(p[:n])
	}
	return n, err
}

// sent follows the frames (RFC 6455 section 5.2).
func (c *upgradedConn) sent(p []byte) {
	for len(p) > 0 {
		if c.left > 0 {
			n := min(c.left, uint64(len(p)))
			c.left, p = c.left-n, p[n:]
			continue
		}
		c.head, p = append(c.head, p[0]), p[1:]
		if size, complete := payload(c.head); complete {
			c.head, c.left = c.head[:0], size
		}
	}
}

// payload is the length of the payload after a head, if that is complete.
func payload(head []byte) (size uint64, complete bool) {
	if len(head) < 2 {
		return 0, false
	}
	wide := map[byte]int{126: 2, 127: 8}[head[1]&0x7f]
	if masked := head[1] >> 7; len(head) < 2+wide+4*int(masked) {
		return 0, false
	}
	if wide == 0 {
		return uint64(head[1] & 0x7f), true
	}
	for _, b := range head[2 : 2+wide] {
		size = size<<8 | uint64(b)
	}
	return size, true
}

// goingAway is a close frame with the status 1001 (RFC 6455 section 7.4.1).
var goingAway = []byte{0x88, 2, 1001 >> 8, 1001 & 0xff}

// goAway sends the end, after a close frame if no other frame is half sent.
func (c *upgradedConn) goAway() {
	_ = c.SetWriteDeadline(time.Now().Add(farewell)) // for a Write that waits, too
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	if c.webSocket && c.left == 0 && len(c.head) == 0 {
		_, _ = c.Conn.Write(goingAway)
	}
	_ = c.CloseWrite()
}

// CloseWrite ends what the client gets.
func (c *upgradedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
