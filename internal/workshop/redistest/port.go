//go:build unix

package redistest

import (
	"net"
	"sync"
	"syscall"
)

// hold keeps a port at which nothing listens from being chosen for another listener, of any
// process, whose answers would be taken for Redis'. A listener that names the port gets it.
func hold(addr string) (release func()) {
	release = func() {}
	at, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return release
	}
	syscall.ForkLock.RLock() // as package net: no child inherits the port
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return release
	}
	// Connections that have just ended keep the port too.
	_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	_ = syscall.Bind(fd, &syscall.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())})
	return sync.OnceFunc(func() { _ = syscall.Close(fd) })
}
