package adaptive

// waitsPerRequest is how often a request waits for the processor on a connection of many requests: the
// goroutine that reads the connection, the one of its handler, and the one that writes.
const waitsPerRequest = 3

// multiplexedClosed is minClosed for these: with 6 goroutines that do a third of the work each
// processors fall idle between two readings of a connection, with 18 the queue grows too long.
const multiplexedClosed = 12.0

// Multiplexed declares that many requests share a connection, as over gRPC: each of them waits
// three times for the processor, so [RunQueue] and [Default] take a third of the goroutines for
// a burst that drains in time, and close less far. The server interceptors and the tap handle
// of grpcmw call it for the limiters that they get. Call it before the first request for one
// that they get in a wrapper, such as an algo.Shadow, and for other protocols of this kind. It
// cannot be undone.
func (l *Limiter) Multiplexed() {
	for _, s := range leaves(l.strategy) {
		if q, ok := s.(*runQueue); ok {
			q.waits.Store(waitsPerRequest)
		}
	}
}

// leastClosed is the closed limit of a queue that leaves no processor idle. Go's poller hands out
// at most 128 connections at a time, and the others wait in the kernel, where they are not counted:
// the limit admits the share of the requests that can be served from batches of a third of
// that. If it admitted more the queue in the kernel would never drain where denials take most of
// the processor.
func (q *runQueue) leastClosed() float64 {
	if q.waits.Load() > 1 {
		return multiplexedClosed
	}
	return min(max(polled*q.passing, 1), minClosed)
}
