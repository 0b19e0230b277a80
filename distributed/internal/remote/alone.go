package remote

import (
	"context"
	"errors"
	"net"
	"os"
	"time"
)

// One of few callers sends its own command: on a connection of ours, with the dialer and the
// credentials of the client, while fewer than maxAlone requests are under way. That spares two
// changes of goroutine, and a third of the time of 4 callers on two processors; 12 callers are
// faster by the queue. A reply that is late for its caller is read by a goroutine, so its charge is
// refunded as from the queue. The caller never dials: without an idle connection it queues, and
// one is opened meanwhile.
const maxAlone = 8

// trusted is how long after its last command a connection is not looked at before the next.
const trusted = 10 * time.Millisecond

// aloneConns is a node's own connections. The mutex of the node guards it.
type aloneConns struct {
	open    func(context.Context) (net.Conn, error) // nil: callers always queue
	longest time.Duration                           // from its opening to its last use; 0: no limit
	unused  time.Duration                           // between two uses; 0: no limit
	idle    []*aloneConn
	busy    int
	opening bool
	opened  time.Time // when the last one was tried
}

// alone sends r by the caller's own hand. sent is false if r has to be queued; otherwise
// answered says whether r has a reply and still belongs to the caller.
func (q *Node) alone(ctx context.Context, r *Request) (answered, sent bool) {
	o := q.takeAlone()
	if o == nil {
		return false, false
	}
	o.reqs[0] = r
	o.cmd = Command{script: r.Script, requests: o.reqs[:], deadline: q.clock.deadline(o.reqs[:])}
	o.out, o.in, o.sent = appendWords(o.out[:0], o.cmd.words()), o.in[:0], time.Now()
	_ = o.SetReadDeadline(time.UnixMicro(r.until.Load()))
	if n, err := o.Write(o.out); err != nil && n == 0 {
		q.giveAlone(o, err)
		return false, false
	}
	stop := o.interruptedBy(ctx)
	err := o.read()
	for more := time.Duration(1); more > 0 && errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil; {
		if more = q.patience(ctx, r); more > 0 {
			_ = o.SetReadDeadline(time.Now().Add(more))
			err = o.read()
		}
	}
	stop()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		r.state.Store(abandoned)
		go q.readLate(o)
		return false, true
	}
	defer q.giveAlone(o, err)
	if q.noteAlone(o, err); wantsQueue(o.cmd.err) {
		return false, false
	}
	q.report(o.cmds[:], false)
	o.cmd.deliver()
	r.Sent = o.sent
	return true, true
}

// wantsQueue reports whether a command has not been executed and another may be, with the
// source of the script or on another connection.
func wantsQueue(err error) bool {
	f := Classify(err)
	return f == NoScript || f == NotExecuted || passing(err)
}

// readLate waits for the reply after the caller has gone on. The timeout is a failure of the node, as
// one of a batch is.
func (q *Node) readLate(o *aloneConn) {
	timeout := q.client.Timeout
	_ = o.SetReadDeadline(o.sent.Add(timeout))
	err := o.read()
	late := errors.Is(err, os.ErrDeadlineExceeded)
	if late {
		if !q.processLate(max(time.Since(o.sent)-timeout, yieldTime())) {
			q.breaker.failed(o.reqs[0].Keys[0], UnknownOutcome, errLate)
		}
		_ = o.SetReadDeadline(o.sent.Add(q.client.ReplyTimeout()))
		err = o.read()
	}
	q.noteAlone(o, err)
	q.report(o.cmds[:], late)
	o.cmd.complete(o.sent)
	q.giveAlone(o, err)
}

// noteAlone gives the command its reply.
func (q *Node) noteAlone(o *aloneConn, err error) {
	if o.cmd.Done(o.reply, err); err == nil {
		q.note(&o.cmd, o.sent)
		q.trips.note(time.Since(o.sent))
	}
}

// takeAlone returns a connection for a caller's own command, nil if it has to queue: after
// corrections, and where many are under way. Without an idle one it opens the next.
func (q *Node) takeAlone() (o *aloneConn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := &q.own
	switch {
	case c.open == nil || q.closed || q.underWay() >= maxAlone:
		return nil
	case len(c.idle) == 0:
		q.openAlone()
		return nil
	}
	last := len(c.idle) - 1
	o, c.idle = c.idle[last], c.idle[:last]
	if !o.usable(c.longest, c.unused) {
		_ = o.Close()
		return nil
	}
	c.busy++
	q.stopped.Add(1)
	return o
}

// underWay counts the requests that have no reply yet. A correction counts as many, since it leaves
// before what comes after it. The caller holds q.mu.
func (q *Node) underWay() int {
	n := q.own.busy + len(q.queue) + maxAlone*len(q.kept)
	for _, b := range q.onWire {
		n += len(b.requests) + maxAlone*len(b.corrections)
	}
	return n
}

// giveAlone takes a connection back. After an error other than a reply it is closed, and so are the
// others: what ended one has probably ended all.
func (q *Node) giveAlone(o *aloneConn, err error) {
	defer q.stopped.Done()
	o.reqs[0], o.cmd = nil, Command{}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.own.busy--
	if err == nil || Classify(err) == NoScript {
		q.own.idle = append(q.own.idle, o)
		return
	}
	_ = o.Close()
	q.closeAlone()
}

// closeAlone closes the idle connections. The caller holds q.mu.
func (q *Node) closeAlone() {
	for _, o := range q.own.idle {
		_ = o.Close()
	}
	q.own.idle = nil
}

// openAlone opens a connection, at most one at a time, and after a failure not before a probe
// interval has passed. The caller holds q.mu.
func (q *Node) openAlone() {
	c := &q.own
	if c.opening || time.Since(c.opened) < q.client.ProbeInterval && len(c.idle)+c.busy == 0 && !c.opened.IsZero() {
		return
	}
	c.opening, c.opened = true, time.Now()
	q.stopped.Add(1)
	go func() {
		defer q.stopped.Done()
		ctx, cancel := context.WithTimeout(q.client.running, q.client.ReplyTimeout())
		defer cancel()
		conn, err := c.open(ctx)
		q.mu.Lock()
		defer q.mu.Unlock()
		c.opening = false
		switch {
		case err != nil:
		case q.closed:
			_ = conn.Close()
		default:
			c.idle = append(c.idle, newAloneConn(conn))
		}
	}()
}
