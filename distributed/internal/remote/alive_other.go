//go:build !unix

package remote

import "net"

// alive cannot look at an idle connection here.
func alive(net.Conn) bool { return true }
