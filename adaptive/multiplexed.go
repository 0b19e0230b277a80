package adaptive

import (
	"sync"
	"sync/atomic"
)

// waitsPerRequest is how often a request on a shared connection waits for the processor: in the
// goroutines that read the connection, run the handler and write.
const waitsPerRequest = 3

// mostRequests is the lead in requests that one kind of connection needs before the queues switch
// to it: a few of the other kind change nothing.
const mostRequests = 256

// connections tracks whether requests share connections, as over HTTP/2 and gRPC.
type connections struct {
	sharing atomic.Int64 // requests on shared connections minus the others, 0 to mostRequests
	shared  atomic.Bool  // the state of the queues
	mu      sync.Mutex   // guards changes of shared
	always  atomic.Bool
}

// Multiplexed declares that many requests share a connection, as over gRPC: each of them waits
// three times for the processor, so [RunQueue] and [Default] take a third of the goroutines for a
// burst that drains in time, and close less far. The server interceptors and the tap handle of
// grpcmw call it for the limiters that they get. Call it before the first request for a limiter
// inside a wrapper, such as an algo.Shadow, and for similar protocols. It cannot be undone.
func (l *Limiter) Multiplexed() {
	l.connections.always.Store(true)
	l.connections.set(l.processors)
}

// SharesConnection records whether a request shares its connection with others, as over HTTP/2.
// Once 256 more requests do than do not, they are treated as after [Limiter.Multiplexed], until 256
// more do not. The middlewares of httpmw call it for each request that they do not skip, denied
// ones included.
func (l *Limiter) SharesConnection(yes bool) {
	c, step := &l.connections, int64(-1)
	if len(l.processors) == 0 || c.always.Load() {
		return
	}
	if yes {
		step = 1
	}
	n := c.sharing.Load()
	next := min(max(n+step, 0), mostRequests)
	if next != n {
		c.sharing.CompareAndSwap(n, next) // losing one count does not matter
	}
	if shared := c.shared.Load(); shared && next == 0 || !shared && next == mostRequests {
		c.set(l.processors)
	}
}

// set informs the queues.
func (c *connections) set(queues []*runQueue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.sharing.Load() // it may have changed
	shared := c.always.Load() || n == mostRequests || n > 0 && c.shared.Load()
	c.shared.Store(shared)
	waits := int64(1)
	if shared {
		waits = waitsPerRequest
	}
	for _, q := range queues {
		q.waits.Store(waits)
	}
}
