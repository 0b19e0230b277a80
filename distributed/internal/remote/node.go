package remote

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Node queues the requests for one Redis node. Requests that arrive while a
// batch is on the wire form the next batch, so batches grow with the load and
// need no timer, and a lone caller pays one round trip.
//
// A late batch does not delay the others: its callers have decided without it.
// The node still reads the reply, for ReplyTimeout, and refunds the charges of
// callers that have stopped waiting.
type Node struct {
	client  *Client
	addr    string // of the node; empty if there is only one, or none is known
	breaker breaker
	trips   roundTrips
	clock   nodeClock
	loaded  atomic.Bool // the server has all scripts of the host, as far as its replies show

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

// batch holds the requests of one round trip.
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
	n := &Node{client: s, addr: addr}
	n.work.L = &n.mu
	n.breaker.client, n.breaker.node = s, n
	n.breaker.level.Store(FullLevel)
	return n
}

// submit queues r. It reports false if the queue is full or the node is closed.
func (n *Node) submit(r *Request) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || len(n.queue) >= maxQueueLen {
		return false
	}
	n.queue = append(n.queue, r)
	if len(n.onWire) < n.trips.width() {
		n.wakeWorker()
	}
	return true
}

// wakeWorker wakes an idle worker or starts one. The caller holds n.mu.
func (n *Node) wakeWorker() {
	switch {
	case n.idle > 0:
		n.work.Signal()
	case n.workers < maxWorkers:
		n.workers++
		n.stopped.Add(1)
		go n.run()
	}
}

// run sends batches until the node is closed and its queue empty.
func (n *Node) run() {
	defer n.stopped.Done()
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		for len(n.queue) == 0 && !n.due() || len(n.onWire) >= n.trips.width() {
			if n.closed {
				n.workers--
				return
			}
			n.idle++
			n.work.Wait()
			n.idle--
		}
		if b := n.nextBatch(); len(b.requests)+len(b.corrections) > 0 {
			n.begin(b)
			n.mu.Unlock()
			n.roundTrip(b)
			n.mu.Lock()
		}
	}
}

// Away reports whether the node's breaker is open.
func (n *Node) Away() bool { return n.breaker.level.Load() == 0 }

// Level returns the percentage of the calls that go to the node. probing reports a recovery.
func (n *Node) Level() (percent int, probing bool) {
	n.breaker.mu.Lock()
	defer n.breaker.mu.Unlock()
	return int(n.breaker.level.Load()), n.breaker.probing
}

// RoundTrips returns quantiles of the latest round trips; 0 without a reply.
func (n *Node) RoundTrips() (median, p99 time.Duration) { return n.trips.quantiles() }

// nextBatch takes the next batch off the queue and drops the requests whose
// callers have stopped waiting. The caller holds n.mu.
func (n *Node) nextBatch() *batch {
	b, i := &batch{corrections: n.takeKept(), requests: make([]*Request, 0, min(len(n.queue), maxBatch))}, 0
	for ; i < len(n.queue) && len(b.requests) < maxBatch; i++ {
		if r := n.queue[i]; r.state.Load() == pending {
			b.requests = append(b.requests, r)
		} else {
			r.Free()
		}
	}
	rest := copy(n.queue, n.queue[i:])
	clear(n.queue[rest:])
	n.queue = n.queue[:rest]
	return b
}

// roundTrip sends b, reports the result to the breaker and completes the requests.
func (n *Node) roundTrip(b *batch) {
	var ctx context.Context = deadline{n.client.ctx, b.sent.Add(n.client.ReplyTimeout())}
	whole := n.client.together()
	cmds := append(newCommands(b.corrections, whole), newCommands(b.requests, whole)...)
	n.send(ctx, cmds)
	cmds = n.resendBySlot(ctx, cmds)
	if cmds[0].err == nil {
		n.trips.note(time.Since(b.sent))
	}
	n.report(cmds, n.end(b))
	n.settle(cmds)
	for _, c := range cmds {
		c.complete(b.sent)
	}
}

// report counts the result of a batch in the breaker, unless the batch was late:
// expire counted it then, and a second failure could open a breaker that is ramping up.
func (n *Node) report(cmds []*Command, late bool) {
	for _, c := range cmds {
		err := c.err
		f := Classify(err)
		switch {
		case f == NoFailure || f == KeyFault || f == NoScript || errors.Is(err, errExpired): // no caller was left
			continue
		case c.requests[0].oneWay && (f == Rejected || f == Misconfigured): // the decisions may pass
			n.client.host.Failed(f, err)
			continue
		case late:
			n.client.host.Failed(f, err)
		default:
			n.breaker.failed(c.requests[0].Keys[0], f, err)
		}
		return
	}
	if !late {
		n.breaker.succeeded()
	}
}

// begin puts b on the wire. The caller holds n.mu.
func (n *Node) begin(b *batch) {
	first := b.requests
	if len(b.corrections) > 0 {
		first = b.corrections
	}
	b.sent, b.key = time.Now(), first[0].Keys[0]
	n.onWire = append(n.onWire, b)
	if !n.armed {
		n.arm(n.client.Timeout)
	}
}

// end takes b off the wire and reports whether it was late.
func (n *Node) end(b *batch) (late bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.onWire = slices.DeleteFunc(n.onWire, func(sent *batch) bool { return sent == b })
	return b.late
}

// warm opens the connections that the distance of the node needs, because opening
// one takes several round trips.
func (n *Node) warm(key string) {
	var probes sync.WaitGroup
	for range n.trips.width() {
		probes.Go(func() { _ = n.breaker.writeProbe(key) })
	}
	probes.Wait()
}

// start runs f on a goroutine that close waits for. It reports false if the
// node is closed.
func (n *Node) start(f func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.stopped.Add(1)
	go func() { defer n.stopped.Done(); f() }()
	return true
}

func (n *Node) isClosed() bool { n.mu.Lock(); defer n.mu.Unlock(); return n.closed }

// close sends the queued requests, or drops them if the breaker is open, and waits
// until nothing is on the wire.
func (n *Node) close() {
	n.mu.Lock()
	n.closed = true
	var dropped []*Request
	if n.breaker.level.Load() == 0 {
		dropped, n.queue = n.queue, nil
	}
	if len(n.queue) > 0 || n.due() {
		n.wakeWorker()
	}
	n.work.Broadcast()
	n.mu.Unlock()
	for _, r := range dropped {
		r.Err = ErrClosed
		r.complete()
	}
	n.stopped.Wait()
	n.passOn()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closeAlone()
	if n.overdue != nil {
		n.overdue.Stop()
	}
}
