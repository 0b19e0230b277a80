package remote

import (
	"context"
	"runtime"
	"slices"
	"time"
)

// arm sets the timer that looks for late batches. The caller holds n.mu.
func (n *Node) arm(d time.Duration) {
	n.armed = true
	if n.overdue == nil {
		n.overdue = time.AfterFunc(d, n.expire)
	} else {
		n.overdue.Reset(d)
	}
}

// expire marks late batches, so that the next ones can leave. It runs at most
// once per timeout, and only while batches are on the wire.
func (n *Node) expire() {
	now := time.Now()
	var lag time.Duration // how late this process itself is
	var keys []string
	n.mu.Lock()
	n.armed = false
	n.onWire = slices.DeleteFunc(n.onWire, func(b *batch) bool {
		over := now.Sub(b.sent) - n.client.Timeout
		if b.late = over >= 0; b.late {
			lag, keys = max(lag, over), append(keys, b.key)
		} else if !n.armed {
			n.arm(-over)
		}
		return b.late
	})
	if len(n.queue) > 0 && len(keys) > 0 {
		n.wakeWorker()
	}
	n.mu.Unlock()
	if len(keys) == 0 || n.processLate(max(lag, yieldTime())) {
		return
	}
	for _, key := range keys {
		n.breaker.failed(key, UnknownOutcome, errLate)
	}
}

// yieldTime measures how long a goroutine of this process waits for a processor.
func yieldTime() time.Duration {
	began := time.Now()
	runtime.Gosched()
	return time.Since(began)
}

// processLate reports whether this process, and not the node, probably made a reply
// late: lag is at least half a timeout, and the node has replied lately.
func (n *Node) processLate(lag time.Duration) bool {
	if lag < n.client.Timeout/2 || !n.trips.answeredWithin(max(5*n.client.Timeout, 4*lag)) {
		return false
	}
	n.client.host.ProcessLate(lag)
	return true
}

// patience returns how much longer the caller of r waits after its timeout: nothing, unless this
// process is late itself; then one more timeout, until ReplyTimeout has passed.
func (n *Node) patience(ctx context.Context, r *Request) time.Duration {
	now := time.Now()
	lag := max(now.Sub(time.UnixMicro(r.until.Load())), yieldTime())
	if HasLeft(ctx) || now.Sub(r.began) > n.client.ReplyTimeout() || !n.processLate(lag) {
		return 0
	}
	r.until.Store(now.Add(n.client.Timeout).UnixMicro())
	return n.client.Timeout
}

// reportDistance reports to the host a node whose replies come, but after the timeout.
func (n *Node) reportDistance() bool {
	median, p99 := n.trips.quantiles()
	if median < n.client.Timeout || !n.trips.answeredWithin(n.client.ReplyTimeout()+2*n.client.ProbeInterval) {
		return false
	}
	n.client.host.Far(n.addr, median, p99)
	return true
}
