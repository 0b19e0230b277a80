package adaptive

import (
	"fmt"
	"time"
)

// Queue says how requests wait for a place; [FIFO] and [CoDel] make one. Every
// queue is bounded in length and in time: an unbounded one turns overload into
// answers that nobody waits for any more.
type Queue struct {
	kind   queueKind
	places int
	wait   time.Duration // longest wait
	target time.Duration // longest wait while the queue stands (CoDel)
}

type queueKind uint8

const (
	unqueued queueKind = iota
	fifo
	codel
)

// mostPlaces bounds the length of a queue.
const mostPlaces = 1 << 20

// FIFO is a queue of at most n requests, 1 to 1048576, each of which waits at
// most d, above 0, and is served in the order of arrival. A request that finds
// the queue full is denied at once.
//
// Take it where the order matters or waits are rare. Under lasting overload
// all that it admits has waited for nearly d; [CoDel] does better there.
func FIFO(n int, d time.Duration) Queue {
	return Queue{kind: fifo, places: n, wait: d}
}

// CoDel is a queue of at most n requests, 1 to 1048576, that tells a burst from
// a standing queue, as RFC 8289 does for packets. A queue that has been empty
// at some moment during the last interval is a burst: requests are served in
// the order of arrival and wait at most interval. One that has not stands:
// newcomers wait at most target, the newest is served first, and when the
// queue is full the oldest makes room, because the newest still has somebody
// who waits for the answer. 0 stands for the RFC's 5 ms and 100 ms.
//
// The form, a bound on the wait and adaptive LIFO instead of the RFC's
// schedule of drops, is that of Maurer, Fail at Scale (ACM Queue 13(8), 2015).
// Do not use it where requests must be served in order.
func CoDel(n int, target, interval time.Duration) Queue {
	if target == 0 {
		target = 5 * time.Millisecond
	}
	if interval == 0 {
		interval = 100 * time.Millisecond
	}
	return Queue{kind: codel, places: n, wait: interval, target: target}
}

func (q Queue) check() error {
	switch {
	case q.kind == unqueued:
		return nil
	case q.places < 1 || q.places > mostPlaces:
		return fmt.Errorf("queue length is %d, want 1 to %d", q.places, mostPlaces)
	case q.wait <= 0:
		return fmt.Errorf("longest wait in the queue is %v, want more than 0", q.wait)
	case q.kind == codel && (q.target <= 0 || q.target > q.wait):
		return fmt.Errorf("target is %v, want more than 0 and at most the interval, %v", q.target, q.wait)
	}
	return nil
}

// WithQueue lets requests that do not fit wait for a place instead of being
// denied at once. Acquire then blocks, until ctx ends at the latest.
func WithQueue(q Queue) Option {
	return Option{"WithQueue", func(s *settings) { s.queue = q }}
}
