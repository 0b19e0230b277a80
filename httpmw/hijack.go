package httpmw

import (
	"crypto/tls"
	"net"
	"runtime"
	"sync"

	"github.com/sluice-go/sluice/algo"
)

// slot is what a hijacked connection holds. How long it lived says nothing
// about how long a request takes, so its outcome is Ignored.
type slot struct {
	held *hold
	once sync.Once
}

func (s *slot) free() {
	s.once.Do(func() { s.held.done(algo.Ignored) })
}

// follow makes the lease end with conn. The connection keeps the methods that
// it has where its type is one of the usual ones. One that is dropped without
// Close frees its slot when it is collected as garbage.
func (h *hold) follow(conn net.Conn) net.Conn {
	h.users.Add(1)
	h.hijacked.Store(true)
	s := &slot{held: h}
	switch c := conn.(type) {
	case *net.TCPConn:
		return collected(&tcpConn{c, s}, s)
	case *net.UnixConn:
		return collected(&unixConn{c, s}, s)
	case *tls.Conn:
		return collected(&tlsConn{c, s}, s)
	}
	return collected(&anyConn{conn, s}, s)
}

func collected[C any](c *C, s *slot) *C {
	runtime.AddCleanup(c, (*slot).free, s)
	return c
}

type tcpConn struct {
	*net.TCPConn
	slot *slot
}

func (c *tcpConn) Close() error {
	defer c.slot.free()
	return c.TCPConn.Close()
}

type unixConn struct {
	*net.UnixConn
	slot *slot
}

func (c *unixConn) Close() error {
	defer c.slot.free()
	return c.UnixConn.Close()
}

type tlsConn struct {
	*tls.Conn
	slot *slot
}

func (c *tlsConn) Close() error {
	defer c.slot.free()
	return c.Conn.Close()
}

type anyConn struct {
	net.Conn
	slot *slot
}

func (c *anyConn) Close() error {
	defer c.slot.free()
	return c.Conn.Close()
}
