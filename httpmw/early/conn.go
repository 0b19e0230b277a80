package early

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// denialTimeout bounds the time in which a client takes in a denial.
const denialTimeout = time.Second

// serverConn answers requests within Read, where the server waits for the first
// bytes of a request and has no others in its buffer. That is so on the first
// read; and after a request, when the server says that the connection is idle, sets
// one read deadline, and offers the whole of its buffer. If it has begun to read a
// request from its buffer, it has set another deadline before.
type serverConn struct {
	net.Conn
	listener *Listener
	buffer   int // size of the server's buffer; 0: nothing was read yet

	mu       sync.Mutex // guards the fields below; held while a denial is written, which Close waits for
	phase    phase
	patience time.Duration // from the last SetReadDeadline to its deadline; 0: none
}

// phase is the state of a connection at the server.
type phase uint8

const (
	serving phase = iota // it reads a request, or serves it
	served               // it has answered
	waiting              // it waits for the next request, unless its buffer has some of it
)

func (c *serverConn) setPhase(p phase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase = p
}

// follow notes the state that the server says it is in. One that reads TLS does not say so of
// this connection, on which nothing is answered then.
func (c *serverConn) follow(s http.ConnState) {
	switch s {
	case http.StateNew:
		c.setPhase(waiting)
	case http.StateIdle:
		c.setPhase(served)
	}
}

// waits reports whether bytes into p will be the first of a request.
func (c *serverConn) waits(p []byte) bool {
	if c.buffer == 0 {
		c.buffer = len(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase == waiting && len(p) == c.buffer
}

func (c *serverConn) Read(p []byte) (int, error) {
	for c.waits(p) {
		n, err := c.Conn.Read(p)
		if err != nil || !c.listener.deniable(p[:n]) || !c.listener.overloaded() {
			c.setPhase(serving)
			return n, err
		}
		if err := c.deny(p[0] == 'H'); err != nil {
			return 0, err
		}
	}
	c.setPhase(serving)
	return c.Conn.Read(p)
}

// deny writes the answer, without a body to a HEAD request, and waits for the next
// request as long as the server would.
func (c *serverConn) deny(head bool) error {
	b := answer
	if head {
		b = b[:len(b)-len(body)]
	}
	c.listener.denied.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	_ = c.SetWriteDeadline(now.Add(c.listener.timeout)) // the server sets its own before it writes
	if _, err := c.Write(b); err != nil {
		return err
	}
	_ = c.SetWriteDeadline(time.Time{})
	if c.patience > 0 {
		return c.Conn.SetReadDeadline(now.Add(c.patience))
	}
	return nil
}

// SetReadDeadline notes the phase of the server and how long it waits.
func (c *serverConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == served {
		c.phase = waiting
	} else if c.buffer > 0 {
		c.phase = serving
	}
	c.patience = 0
	if !t.IsZero() {
		c.patience = max(time.Until(t), 0)
	}
	return c.Conn.SetReadDeadline(t)
}

// Close lets a denial be written.
func (c *serverConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite sends the end of the response; net/http looks for it.
func (c *serverConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// ReadFrom lets the system send files.
func (c *serverConn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

const body = "Request cannot be satisfied due to temporary server capacity constraints.\n"

var answer = []byte("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nCache-Control: no-store\r\n" +
	"Content-Type: text/plain; charset=utf-8\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
