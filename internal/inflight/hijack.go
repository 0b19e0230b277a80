package inflight

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
)

// slot is the slot of a hijacked connection. Its outcome is untimed, because the
// life of the connection does not reflect how long a request takes.
type slot struct {
	lease *lease
	once  sync.Once
	refs  atomic.Int32 // the connection and its buffers, until they are collected
}

func (s *slot) free() {
	s.once.Do(func() { s.lease.drop(algo.Succeeded | algo.Untimed) })
}

// follow makes the lease end with conn. The connection keeps its methods if its
// type is one of net/http's, and always CloseWrite. A connection that is dropped
// without Close frees its slot when it and its buffers, which a handler may use
// alone, are collected as garbage.
func (l *lease) follow(conn net.Conn, buf *bufio.ReadWriter) net.Conn {
	l.users.Add(1)
	l.hijacked.Store(true)
	l.streams()
	s := &slot{lease: l}
	s.refs.Store(1)
	if buf != nil && buf.Reader != nil && buf.Writer != nil {
		s.refs.Store(3)
		collected(buf.Reader, s)
		collected(buf.Writer, s)
	}
	switch c := conn.(type) {
	case *net.TCPConn:
		return collected(&tcpConn{c, c, s}, s)
	case *tcpConn: // of an outer limit
		return collected(&tcpConn{c.TCPConn, c, s}, s)
	case *net.UnixConn:
		return collected(&unixConn{c, c, s}, s)
	case *unixConn:
		return collected(&unixConn{c.UnixConn, c, s}, s)
	case *tls.Conn:
		return collected(&tlsConn{c, c, s}, s)
	case *tlsConn:
		return collected(&tlsConn{c.Conn, c, s}, s)
	}
	if half, ok := conn.(halfCloser); ok {
		return collected(&halfConn{anyConn{conn, s}, half}, s)
	}
	return collected(&anyConn{conn, s}, s)
}

// halfCloser is a connection that is closed in one direction, as proxies do.
type halfCloser interface{ CloseWrite() error }

// lose drops one reference; the last one frees the slot.
func (s *slot) lose() {
	if s.refs.Add(-1) == 0 {
		s.free()
	}
}

// end closes c, and frees the slot even if that panics.
func (s *slot) end(c io.Closer) error {
	defer s.free()
	return c.Close()
}

func collected[C any](c *C, s *slot) *C {
	runtime.AddCleanup(c, (*slot).lose, s)
	return c
}

type tcpConn struct {
	*net.TCPConn
	closes io.Closer
	slot   *slot
}

func (c *tcpConn) Close() error { return c.slot.end(c.closes) }

type unixConn struct {
	*net.UnixConn
	closes io.Closer
	slot   *slot
}

func (c *unixConn) Close() error { return c.slot.end(c.closes) }

type tlsConn struct {
	*tls.Conn
	closes io.Closer
	slot   *slot
}

func (c *tlsConn) Close() error { return c.slot.end(c.closes) }

type anyConn struct {
	net.Conn
	slot *slot
}

func (c *anyConn) Close() error { return c.slot.end(c.Conn) }

type halfConn struct {
	anyConn
	halfCloser
}
