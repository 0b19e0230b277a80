package redistest_test

import (
	"context"
	"net"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// A proxy that refuses connections keeps its port: no other listener is given it. It did
// where a test begins with the fault, and clients then had answers of another test's Redis.
func TestRefusingProxyKeepsItsPort(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, free.Close())
	if err := chosen(t, free.Addr().String()); err != nil {
		t.Log("no choice of a port can be asked for before Linux 6.3:", err)
		return
	}
	p := redistest.StartProxy(t, redistest.Start(t))
	for range 2 {
		p.Set(redistest.Fault{Refuse: true})
		require.ErrorIs(t, chosen(t, p.Addr()), syscall.EADDRINUSE)
		_, err := net.Dial("tcp", p.Addr())
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		p.Set(redistest.Fault{})
		conn, err := net.Dial("tcp", p.Addr())
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
}

// chosen listens where the system chooses among the port of addr alone.
func chosen(t *testing.T, addr string) error {
	const rangeOfPorts = 51 // IP_LOCAL_PORT_RANGE
	_, text, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		_ = c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, rangeOfPorts, port<<16|port)
		})
		return err
	}}
	l, err := config.Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err == nil {
		err = l.Close()
	}
	return err
}
