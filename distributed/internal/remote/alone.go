package remote

import (
	"context"
	"errors"
	"net"
	"os"
	"time"
)

// maxAlone bounds the requests under way while callers send their own commands. That saves two
// changes of goroutine, and a third of the time for 4 callers on two processors; 12 callers are
// faster through the queue. The connections use the dialer and the credentials of the client.
// readLate reads a reply that is late for its caller, so its charge is refunded as from the queue.
// A caller never dials: without an idle connection it queues, and the node opens one meanwhile.
const maxAlone = 8

// trusted is the time after its last command in which a connection counts as alive without a check.
const trusted = 10 * time.Millisecond

// aloneConns holds the connections on which callers send for themselves; Node.mu guards it.
type aloneConns struct {
	open    func(context.Context) (net.Conn, error) // nil: callers always queue
	longest time.Duration                           // from opening to last use; 0: no limit
	unused  time.Duration                           // between two uses; 0: no limit
	idle    []*aloneConn
	busy    int
	opening bool
	opened  time.Time // when the last one was tried
}

// alone writes r's command on the caller's own goroutine and waits for the reply. sent is false
// if r must be queued; otherwise answered reports whether r has a reply and belongs to the caller.
func (n *Node) alone(ctx context.Context, r *Request) (answered, sent bool) {
	o := n.takeAlone()
	if o == nil {
		return false, false
	}
	o.reqs[0] = r
	o.cmd = Command{script: r.Script, requests: o.reqs[:], deadline: n.clock.deadline(o.reqs[:])}
	o.out, o.in, o.sent = appendWords(o.out[:0], o.cmd.words()), o.in[:0], time.Now()
	_ = o.SetReadDeadline(time.UnixMicro(r.until.Load()))
	if written, err := o.Write(o.out); err != nil && written == 0 {
		n.giveAlone(o, err)
		return false, false
	}
	stop := o.interruptedBy(ctx)
	err := o.read()
	for more := time.Duration(1); more > 0 && errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil; {
		if more = n.patience(ctx, r); more > 0 {
			_ = o.SetReadDeadline(time.Now().Add(more))
			err = o.read()
		}
	}
	stop()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		r.state.Store(abandoned)
		go n.readLate(o)
		return false, true
	}
	defer n.giveAlone(o, err)
	if n.noteAlone(o, err); wantsQueue(o.cmd.err) {
		return false, false
	}
	n.report(o.cmds[:], false)
	o.cmd.deliver()
	r.Sent = o.sent
	return true, true
}

// wantsQueue reports whether the command was not executed but may succeed from the queue, with the
// source of the script or on another connection.
func wantsQueue(err error) bool {
	f := Classify(err)
	return f == NoScript || f == NotExecuted || passing(err)
}

// readLate waits for the reply after the caller has left. A timeout counts in the breaker,
// as that of a batch.
func (n *Node) readLate(o *aloneConn) {
	timeout := n.client.Timeout
	_ = o.SetReadDeadline(o.sent.Add(timeout))
	err := o.read()
	late := errors.Is(err, os.ErrDeadlineExceeded)
	if late {
		if !n.processLate(max(time.Since(o.sent)-timeout, yieldTime())) {
			n.breaker.failed(o.reqs[0].Keys[0], UnknownOutcome, errLate)
		}
		_ = o.SetReadDeadline(o.sent.Add(n.client.ReplyTimeout()))
		err = o.read()
	}
	n.noteAlone(o, err)
	n.report(o.cmds[:], late)
	o.cmd.complete(o.sent)
	n.giveAlone(o, err)
}

// noteAlone stores the reply in the command, and notes the clock and the round trip.
func (n *Node) noteAlone(o *aloneConn, err error) {
	if o.cmd.Done(o.reply, err); err == nil {
		n.note(&o.cmd, o.sent)
		n.trips.note(time.Since(o.sent))
	}
}

// takeAlone returns a connection for a caller's own command; nil if the caller must queue,
// because corrections go first, many requests are under way or no connection is idle.
func (n *Node) takeAlone() (o *aloneConn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := &n.own
	switch {
	case c.open == nil || n.closed || n.underWay() >= maxAlone:
		return nil
	case len(c.idle) == 0:
		n.openAlone()
		return nil
	}
	last := len(c.idle) - 1
	o, c.idle = c.idle[last], c.idle[:last]
	if !o.usable(c.longest, c.unused) {
		_ = o.Close()
		return nil
	}
	c.busy++
	n.stopped.Add(1)
	return o
}

// underWay counts the requests without a reply. A correction counts as maxAlone, because later
// requests must not overtake it. The caller holds n.mu.
func (n *Node) underWay() int {
	count := n.own.busy + len(n.queue) + maxAlone*len(n.kept)
	for _, b := range n.onWire {
		count += len(b.requests) + maxAlone*len(b.corrections)
	}
	return count
}

// giveAlone takes o back. After an error other than NOSCRIPT it closes o and the idle
// connections, because what broke one has probably broken all.
func (n *Node) giveAlone(o *aloneConn, err error) {
	defer n.stopped.Done()
	o.reqs[0], o.cmd = nil, Command{}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.own.busy--
	if err == nil || Classify(err) == NoScript {
		n.own.idle = append(n.own.idle, o)
		return
	}
	_ = o.Close()
	n.closeAlone()
}

// closeAlone closes the idle connections. The caller holds n.mu.
func (n *Node) closeAlone() {
	for _, o := range n.own.idle {
		_ = o.Close()
	}
	n.own.idle = nil
}

// openAlone opens a connection in the background, one at a time, and after a failure at most once
// per probe interval. The caller holds n.mu.
func (n *Node) openAlone() {
	c := &n.own
	if c.opening || time.Since(c.opened) < n.client.ProbeInterval && len(c.idle)+c.busy == 0 && !c.opened.IsZero() {
		return
	}
	c.opening, c.opened = true, time.Now()
	n.stopped.Add(1)
	go func() {
		defer n.stopped.Done()
		ctx, cancel := context.WithTimeout(n.client.running, n.client.ReplyTimeout())
		defer cancel()
		conn, err := c.open(ctx)
		n.mu.Lock()
		defer n.mu.Unlock()
		c.opening = false
		switch {
		case err != nil:
		case n.closed:
			_ = conn.Close()
		default:
			c.idle = append(c.idle, newAloneConn(conn))
		}
	}()
}
