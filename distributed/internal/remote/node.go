package remote

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Node is the queue to one Redis node. The requests that arrive while a
// batch is on the wire leave together as the next batch, so batches grow with
// the load, no timer is needed and a lone caller pays one round trip.
//
// A late batch does not delay the queue: its callers have decided without it
// by then. Its reply is still read, for ReplyTimeout, and the charges of callers that have stopped
// waiting are refunded.
type Node struct {
	client  *Client
	addr    string // of the node; empty if there is only one, or none is known
	breaker breaker
	trips   roundTrips
	clock   nodeClock
	loaded  atomic.Bool // it knows all scripts of the host, as far as its replies show

	mu    sync.Mutex
	work  sync.Cond
	queue []*Request
	corrections
	idle    int // workers that wait for requests
	workers int
	onWire  []*batch    // sent, not answered and not late
	overdue *time.Timer // fires when the oldest batch may be late
	armed   bool
	closed  bool
	stopped sync.WaitGroup
	own     aloneConns
}

// batch is the requests that leave in one round trip.
type batch struct {
	corrections, requests []*Request
	key                   string // one of its keys
	sent                  time.Time
	late                  bool
}

const (
	maxWorkers  = 32      // batches on the wire, late ones included
	maxBatch    = 128     // requests in a batch: about 0.3 ms of the server's time
	maxQueueLen = 1 << 14 // queued requests; beyond, callers decide without Redis
)

func newNode(s *Client, addr string) *Node {
	q := &Node{client: s, addr: addr}
	q.work.L = &q.mu
	q.breaker.client, q.breaker.queue = s, q
	q.breaker.level.Store(FullLevel)
	return q
}

// submit queues r. It reports false when the queue is full or closed.
func (q *Node) submit(r *Request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.queue) >= maxQueueLen {
		return false
	}
	q.queue = append(q.queue, r)
	if len(q.onWire) < q.trips.width() {
		q.wakeWorker()
	}
	return true
}

// wakeWorker finds a worker for the queue. The caller holds q.mu.
func (q *Node) wakeWorker() {
	switch {
	case q.idle > 0:
		q.work.Signal()
	case q.workers < maxWorkers:
		q.workers++
		q.stopped.Add(1)
		go q.run()
	}
}

// run is a worker: it sends batches until the queue is closed and empty.
func (q *Node) run() {
	defer q.stopped.Done()
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		for len(q.queue) == 0 && !q.due() || len(q.onWire) >= q.trips.width() {
			if q.closed {
				q.workers--
				return
			}
			q.idle++
			q.work.Wait()
			q.idle--
		}
		if b := q.nextBatch(); len(b.requests)+len(b.corrections) > 0 {
			q.begin(b)
			q.mu.Unlock()
			q.roundTrip(b)
			q.mu.Lock()
		}
	}
}

// Away reports whether the node's breaker is open.
func (q *Node) Away() bool { return q.breaker.level.Load() == 0 }

// Level returns the percentage of the calls that go to the node, and whether a probe checks
// whether it is back.
func (q *Node) Level() (percent int, probing bool) {
	q.breaker.mu.Lock()
	defer q.breaker.mu.Unlock()
	return int(q.breaker.level.Load()), q.breaker.probing
}

// RoundTrips returns the median and the 99th percentile of the latest ones; 0 without a reply.
func (q *Node) RoundTrips() (median, p99 time.Duration) { return q.trips.quantiles() }

// nextBatch takes the next batch off the queue and drops the requests whose
// callers have stopped waiting. The caller holds q.mu.
func (q *Node) nextBatch() *batch {
	b, n := &batch{corrections: q.takeKept(), requests: make([]*Request, 0, min(len(q.queue), maxBatch))}, 0
	for ; n < len(q.queue) && len(b.requests) < maxBatch; n++ {
		if r := q.queue[n]; r.state.Load() == pending {
			b.requests = append(b.requests, r)
		} else {
			r.Free()
		}
	}
	rest := copy(q.queue, q.queue[n:])
	clear(q.queue[rest:])
	q.queue = q.queue[:rest]
	return b
}

// roundTrip sends a batch, reports its result to the breaker and completes its
// requests.
func (q *Node) roundTrip(b *batch) {
	var ctx context.Context = deadline{q.client.ctx, b.sent.Add(q.client.ReplyTimeout())}
	whole := q.client.together()
	cmds := append(newCommands(b.corrections, whole), newCommands(b.requests, whole)...)
	q.send(ctx, cmds)
	cmds = q.resendBySlot(ctx, cmds)
	if cmds[0].err == nil {
		q.trips.note(time.Since(b.sent))
	}
	q.report(cmds, q.end(b))
	q.settle(cmds)
	for _, c := range cmds {
		c.complete(b.sent)
	}
}

// report counts the result of a batch in the breaker. A late batch was counted when it
// became late: its final result is neither a success nor a second failure,
// which would open a breaker that is ramping up again.
func (q *Node) report(cmds []*Command, late bool) {
	for _, c := range cmds {
		err := c.err
		f := Classify(err)
		switch {
		case f == NoFailure || f == KeyFault || f == NoScript || errors.Is(err, errExpired): // no caller was left
			continue
		case c.requests[0].oneWay && (f == Rejected || f == Misconfigured): // the decisions may pass
			q.client.host.Failed(f, err)
			continue
		case late:
			q.client.host.Failed(f, err)
		default:
			q.breaker.failed(c.requests[0].Keys[0], f, err)
		}
		return
	}
	if !late {
		q.breaker.succeeded()
	}
}

// begin notes that b leaves. The caller holds q.mu.
func (q *Node) begin(b *batch) {
	first := b.requests
	if len(b.corrections) > 0 {
		first = b.corrections
	}
	b.sent, b.key = time.Now(), first[0].Keys[0]
	q.onWire = append(q.onWire, b)
	if !q.armed {
		q.arm(q.client.Timeout)
	}
}

// end notes that b is answered and reports whether it was late.
func (q *Node) end(b *batch) (late bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.onWire = slices.DeleteFunc(q.onWire, func(sent *batch) bool { return sent == b })
	return b.late
}

// warm opens as many connections as the distance of the node needs: opening one
// takes several round trips.
func (q *Node) warm(key string) {
	var probes sync.WaitGroup
	for range q.trips.width() {
		probes.Go(func() { _ = q.breaker.writeProbe(key) })
	}
	probes.Wait()
}

// start runs f on a goroutine that close waits for. It reports false if the
// queue is closed.
func (q *Node) start(f func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.stopped.Add(1)
	go func() { defer q.stopped.Done(); f() }()
	return true
}

func (q *Node) isClosed() bool { q.mu.Lock(); defer q.mu.Unlock(); return q.closed }

// close sends the queued requests, unless the breaker is open, and waits until
// nothing is on the wire.
func (q *Node) close() {
	q.mu.Lock()
	q.closed = true
	var dropped []*Request
	if q.breaker.level.Load() == 0 {
		dropped, q.queue = q.queue, nil
	}
	if len(q.queue) > 0 || q.due() {
		q.wakeWorker()
	}
	q.work.Broadcast()
	q.mu.Unlock()
	for _, r := range dropped {
		r.Err = ErrClosed
		r.complete()
	}
	q.stopped.Wait()
	q.passOn()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closeAlone()
	if q.overdue != nil {
		q.overdue.Stop()
	}
}
