package remote

import "time"

// corrections are the requests whose reply nobody awaits: releases, refunds, settlements,
// renewals. They are never dropped because the node is away: they leave with the next
// requests or, of a node that rejects those, with the next probe, before them and in commands of their own,
// or alone as soon as the node answers. What
// has certainly not been executed, or may be executed twice, is kept again. The units of a
// correction that is lost stay charged until they drain or expire, which never exceeds the
// limit.
type corrections struct {
	kept []*Request
	held bool // the last ones came back: they wait for the next requests, or for flush
}

// MaxKept bounds the corrections of a node, about 5 MB.
const MaxKept = 1 << 14

// keep keeps r until it can leave. It reports false if the queue is closed, has no worker
// left, and no reply of a caller's own command is read any more.
func (q *Node) keep(r *Request) bool {
	q.mu.Lock()
	full := len(q.kept) >= MaxKept
	switch {
	case q.closed && q.workers+q.own.busy == 0:
		q.mu.Unlock()
		return false
	case !full:
		q.kept = append(q.kept, r)
		q.wakeFor()
	}
	q.mu.Unlock()
	if full {
		q.client.lose(r, nil)
	}
	return true
}

// due reports whether corrections leave alone. The caller holds q.mu.
func (q *Node) due() bool {
	return len(q.kept) > 0 && !q.held && q.breaker.level.Load() > 0
}

// wakeFor finds a worker for corrections that are due. The caller holds q.mu.
func (q *Node) wakeFor() {
	if q.due() && len(q.onWire) < q.trips.width() {
		q.wakeWorker()
	}
}

// flush sends what is kept: the node has answered.
func (q *Node) flush() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held = false
	q.wakeFor()
}

// takeKept takes the corrections of the next batch. The caller holds q.mu.
func (q *Node) takeKept() []*Request {
	n := min(len(q.kept), maxBatch)
	taken := q.kept[:n:n]
	if q.kept = q.kept[n:]; len(q.kept) == 0 {
		q.kept = nil
	}
	return taken
}

// settle keeps the corrections among cmds that failed and may be sent again. The others are
// lost.
func (q *Node) settle(cmds []*Command) {
	var again []*Request
	for _, c := range cmds {
		if c.err == nil || !c.requests[0].oneWay {
			continue
		}
		f := Classify(c.err)
		unharmed := f == NotExecuted || f == Rejected || f == NoScript || passing(c.err)
		for _, r := range c.requests {
			if unharmed || f == UnknownOutcome && r.Twice {
				again = append(again, r)
			} else {
				q.client.lose(r, c.err)
			}
		}
		c.requests = nil
	}
	if len(again) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.kept = append(again, q.kept...)
	q.held = true
	time.AfterFunc(q.client.ProbeInterval, func() {
		if q.breaker.level.Load() > 0 { // otherwise the next probe flushes
			q.flush()
		}
	})
}

// passOn sends what a closed queue has kept to the node that follows it.
func (q *Node) passOn() {
	q.mu.Lock()
	kept := q.kept
	q.kept = nil
	q.mu.Unlock()
	for _, r := range kept {
		if q.client.closed.Load() {
			q.client.lose(r, ErrClosed)
		} else {
			q.client.Send(r)
		}
	}
}

// Kept is the number of corrections that wait for the node.
func (q *Node) Kept() int { q.mu.Lock(); defer q.mu.Unlock(); return len(q.kept) }

func (s *Client) lose(r *Request, err error) {
	if !r.Renews {
		s.host.Lost(r.Name, s.lost.Add(1), err)
	}
	r.Free()
}
