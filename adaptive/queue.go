package adaptive

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/internal/wiring"
)

// Queue configures how requests wait for a slot; [FIFO] and [CoDel] make one. Its length and its
// waits are bounded, because an unbounded queue turns overload into late answers.
type Queue struct {
	discipline discipline
	length     int
	wait       time.Duration // longest wait
	target     time.Duration // longest wait in a standing queue (CoDel)
}

type discipline uint8

const (
	unqueued discipline = iota
	fifo
	codel
)

const maxQueueLength = 1 << 20

// FIFO returns a queue in the order of arrival: at most n requests, 1 to 1048576, each of which
// waits at most d, above 0. A full queue denies new requests at once.
//
// Use it where the order matters or waits are rare. Under lasting overload every admitted request
// has waited for nearly d; [CoDel] does better there.
func FIFO(n int, d time.Duration) Queue {
	return Queue{discipline: fifo, length: n, wait: d}
}

// CoDel returns a queue of at most n requests, 1 to 1048576, that distinguishes a burst from a standing
// queue, as RFC 8289 does for packets.
//
//   - A queue that was empty at some moment of the last interval is a burst: requests are served in the
//     order of arrival and wait at most interval.
//   - Any other queue is a standing queue: new requests wait at most target, the newest is served
//     first, and when the queue is full the oldest is denied to make room, because its caller has
//     waited longest and is the likeliest to have given up.
//
// With [WithFairShares] each tenant has such a queue, as in RFC 8290; all of a class are standing while
// several tenants have been waiting at every moment of an interval. A target or interval of 0 means the
// RFC's 5 ms and 100 ms.
//
// The bounded wait and adaptive LIFO, in place of the RFC's schedule of drops, are from Maurer, Fail at
// Scale (ACM Queue 13(8), 2015). Do not use it where requests must be served in order.
func CoDel(n int, target, interval time.Duration) Queue {
	if target == 0 {
		target = 5 * time.Millisecond
	}
	if interval == 0 {
		interval = 100 * time.Millisecond
	}
	return Queue{discipline: codel, length: n, wait: interval, target: target}
}

func (q Queue) check() error {
	switch {
	case q.discipline == unqueued:
		return nil
	case q.length < 1 || q.length > maxQueueLength:
		return fmt.Errorf("queue length is %d, want 1 to %d", q.length, maxQueueLength)
	case q.wait <= 0:
		return fmt.Errorf("longest wait in the queue is %v, want more than 0", q.wait)
	case q.discipline == codel && (q.target <= 0 || q.target > q.wait):
		return fmt.Errorf("target is %v, want more than 0, at most the interval, %v", q.target, q.wait)
	}
	return nil
}

// WithQueue lets requests that do not fit wait for a slot: Acquire blocks, at most until its context ends.
//
// With [WithPriorities] the queue serves a higher class first and, when full, denies the lowest: a lower
// class waits while a higher one takes all slots. With [WithFairShares] the tenants of a class take turns,
// by their weights and the service of their requests, and a full queue denies the last request of the
// tenant that would be served last or has used most of its share. No slots are kept free.
//
// Bound: in the order of arrival a request waits for the earlier ones of its class and tenant, and for
// each other tenant of the class as many, times the ratio of the weights, plus one. CoDel serves a
// standing queue newest first; there its target is the bound.
func WithQueue(q Queue) Option {
	return wiring.With("WithQueue", q)
}
