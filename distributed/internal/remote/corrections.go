package remote

import "time"

// corrections holds the requests whose reply no caller awaits: releases, refunds,
// settlements, renewals. An outage of the node drops none. They leave in commands of
// their own, before the next requests; with the next probe if the node rejects requests;
// or alone as soon as the node answers. settle keeps one again if it has certainly not
// been executed or may be executed twice. The units of a lost correction stay charged
// until they drain or expire, which never exceeds the limit.
type corrections struct {
	kept []*Request
	held bool // the last ones failed: they wait for the next requests, or for flush
}

// MaxKept bounds the corrections of a node, about 5 MB.
const MaxKept = 1 << 14

// keep stores r until it can leave. It reports false if the node is closed and
// neither a worker nor an aloneConn could still send r.
func (n *Node) keep(r *Request) bool {
	n.mu.Lock()
	full := len(n.kept) >= MaxKept
	switch {
	case n.closed && n.workers+n.own.busy == 0:
		n.mu.Unlock()
		return false
	case !full:
		n.kept = append(n.kept, r)
		n.wakeFor()
	}
	n.mu.Unlock()
	if full {
		n.client.lose(r, nil)
	}
	return true
}

// due reports whether corrections may leave without requests. The caller holds n.mu.
func (n *Node) due() bool {
	return len(n.kept) > 0 && !n.held && n.breaker.level.Load() > 0
}

// wakeFor finds a worker for corrections that are due. The caller holds n.mu.
func (n *Node) wakeFor() {
	if n.due() && len(n.onWire) < n.trips.width() {
		n.wakeWorker()
	}
}

// flush sends the kept corrections, because the node has answered.
func (n *Node) flush() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held = false
	n.wakeFor()
}

// takeKept takes the corrections of the next batch. The caller holds n.mu.
func (n *Node) takeKept() []*Request {
	many := min(len(n.kept), maxBatch)
	taken := n.kept[:many:many]
	if n.kept = n.kept[many:]; len(n.kept) == 0 {
		n.kept = nil
	}
	return taken
}

// settle keeps the corrections among cmds that failed and may be sent again. The others are
// lost.
func (n *Node) settle(cmds []*Command) {
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
				n.client.lose(r, c.err)
			}
		}
		c.requests = nil
	}
	if len(again) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept = append(again, n.kept...)
	n.held = true
	time.AfterFunc(n.client.ProbeInterval, func() {
		if n.breaker.level.Load() > 0 { // otherwise the next probe flushes
			n.flush()
		}
	})
}

// passOn sends the corrections of a closed node to the node that now serves their keys.
func (n *Node) passOn() {
	n.mu.Lock()
	kept := n.kept
	n.kept = nil
	n.mu.Unlock()
	for _, r := range kept {
		if n.client.closed.Load() {
			n.client.lose(r, ErrClosed)
		} else {
			n.client.Send(r)
		}
	}
}

// Kept returns the number of corrections that wait for the node.
func (n *Node) Kept() int { n.mu.Lock(); defer n.mu.Unlock(); return len(n.kept) }

func (s *Client) lose(r *Request, err error) {
	if !r.Renews {
		s.host.Lost(r.Name, s.lost.Add(1), err)
	}
	r.Free()
}
