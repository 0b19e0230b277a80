package adaptive

import (
	"sync"
	"sync/atomic"
)

// waitsPerRequest is how often a request waits for the processor on a connection of many requests: the
// goroutine that reads the connection, the one of its handler, and the one that writes.
const waitsPerRequest = 3

// mostRequests is how many more requests of one kind of connection than of the other are taken
// for most: a few of the others among many change nothing.
const mostRequests = 256

// connections is whether requests share them.
type connections struct {
	sharing atomic.Int64 // requests that share one, less those that do not, 0 to mostRequests
	shared  atomic.Bool  // what the queues know
	mu      sync.Mutex   // guards changes of it
	always  atomic.Bool
}

// Multiplexed declares that many requests share a connection, as over gRPC: each of them waits
// three times for the processor, so [RunQueue] and [Default] take a third of the goroutines for
// a burst that drains in time, and close less far. The server interceptors and the tap handle
// of grpcmw call it for the limiters that they get. Call it before the first request for one
// that they get in a wrapper, such as an algo.Shadow, and for other protocols of this kind. It
// cannot be undone.
func (l *Limiter) Multiplexed() {
	l.connections.always.Store(true)
	l.connections.set(l.processors)
}

// SharesConnection notes whether a request shares its connection with others, as over HTTP/2.
// From 256 such requests more than others on, and until there are 256 others more, they are
// treated as after [Limiter.Multiplexed]. The middlewares of httpmw call it for each request that
// they do not skip, also for those that are denied.
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
		c.sharing.CompareAndSwap(n, next) // one that is not counted does not matter
	}
	if shared := c.shared.Load(); shared && next == 0 || !shared && next == mostRequests {
		c.set(l.processors)
	}
}

// set tells the queues.
func (c *connections) set(queues []*runQueue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.sharing.Load() // it may have changed meanwhile
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
