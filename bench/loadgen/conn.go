package loadgen

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// conn is a connection with at most one request on it.
type conn struct {
	net.Conn
	answer atomic.Pointer[Answer] // of that request
	dead   atomic.Bool
	mu     sync.Mutex // guards the opening against hanging up meanwhile
}

// take puts a request on an idle connection, unless that has ended.
func (c *conn) take(a *Answer) bool {
	c.answer.Store(a)
	// The goroutine that ends the connection marks it dead before it looks for a request.
	return !c.dead.Load() || !c.answer.CompareAndSwap(a, nil)
}

// hangUp ends the connection, whether or not it is open yet.
func (c *conn) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead.Store(true)
	if c.Conn != nil {
		_ = c.Close()
	}
}

// opened makes nc the connection, unless it has been closed.
func (c *conn) opened(nc net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead.Load() {
		_ = nc.Close()
		return false
	}
	c.Conn = nc
	return true
}

// read opens a connection, sends the request for which it was made, and takes
// the answers off it until it ends.
func (g *generator) read(c *conn) {
	nc, err := g.dial()
	if err != nil {
		c.hangUp()
		g.settle(c, notOpened(err))
		return
	}
	if !c.opened(nc) {
		return
	}
	if _, err := c.Write(g.request); err != nil {
		c.hangUp()
		g.settle(c, Broken)
		return
	}
	g.readAnswers(c)
}

// readAnswers takes the answers off a connection until it ends.
func (g *generator) readAnswers(c *conn) {
	defer func() {
		c.hangUp()
		g.settle(c, Broken)
	}()
	r := reader{conn: c.Conn}
	for {
		status, last, err := r.answer()
		// An answer to no request ends the connection too: either the client has
		// given up, or the server has sent an unrequested answer.
		if err != nil || !g.settle(c, int16(status)) || last {
			return
		}
		g.idle.push(c)
	}
}

func notOpened(err error) int16 {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return TimedOut
	}
	return NoConn
}
