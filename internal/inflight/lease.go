package inflight

import (
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
)

// lease is the lease of a request, which outlives the handler if the connection is
// hijacked. The later of the end of the handler and the close of the connection
// releases it, so that neither can do so while the other still uses it.
//
// It reports when the request waits for its client, so that adaptive limits do
// not count it meanwhile. Reads and writes may overlap, and a read may outlast
// the handler.
type lease struct {
	algo.Lease
	users    atomic.Int32 // the handler, and the connection if it is hijacked
	hijacked atomic.Bool

	mu       sync.Mutex // guards the fields below, and the end of the lease
	waits    int        // operations that may wait for the client
	streamed bool       // one of them is the rest of the request
	ended    bool
}

// drop ends one use of the lease.
func (l *lease) drop(o algo.Outcome) {
	if l.users.Add(-1) > 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.Release(o)
}
