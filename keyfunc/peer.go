package keyfunc

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"google.golang.org/grpc/peer"
)

var errNoPeer = noKey("the connection has no address")

// requestPeer is the other end of the connection of a request.
//
// Whether that is a Unix socket is asked of the listener's side: a client may
// bind its own end to a file named like an address, "10.0.0.1:80", and
// RemoteAddr is then that name.
func requestPeer(r *http.Request) (hop, bool) {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if isUnix(addr) || r.RemoteAddr == "@" {
		return local, true
	}
	return parseEndpoint(r.RemoteAddr)
}

// callPeer is the other end of the connection of a call.
func callPeer(ctx context.Context) (hop, bool) {
	p, ok := peer.FromContext(ctx)
	if !ok || p == nil || p.Addr == nil {
		return hop{}, false
	}
	if isUnix(p.Addr) {
		return local, true
	}
	if a, ok := p.Addr.(*net.TCPAddr); ok && a != nil {
		ip, ok := netip.AddrFromSlice(a.IP)
		h := hop{ip: ipOf(ip)}
		return h, ok && !h.namesNoHost()
	}
	return parseEndpoint(p.Addr.String())
}

// isUnix reports whether addr is that of a Unix socket.
func isUnix(addr net.Addr) bool {
	switch addr.(type) {
	case nil, *net.TCPAddr:
		return false
	case *net.UnixAddr:
		return true
	}
	return strings.HasPrefix(addr.Network(), "unix")
}
