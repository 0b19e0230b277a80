package httpmw

import "github.com/sluice-go/sluice/algo"

// connections is an adaptive limiter: where requests share connections, as over HTTP/2, they wait
// for the processor more than once.
type connections interface{ SharesConnection(yes bool) }

// connectionsOf is nil if l does not ask for it.
func connectionsOf(l algo.Limiter) connections {
	c, _ := l.(connections)
	return c
}
