package remote

import (
	"context"
	"runtime"
	"slices"
	"time"
)

// arm sets the timer that looks for late batches. The caller holds q.mu.
func (q *Node) arm(d time.Duration) {
	q.armed = true
	if q.overdue == nil {
		q.overdue = time.AfterFunc(d, q.expire)
	} else {
		q.overdue.Reset(d)
	}
}

// expire marks late batches, so that the next ones can leave. It runs at most
// once in each timeout, and not while the queue is idle.
func (q *Node) expire() {
	now := time.Now()
	var lag time.Duration // how late this process itself is
	var keys []string
	q.mu.Lock()
	q.armed = false
	q.onWire = slices.DeleteFunc(q.onWire, func(b *batch) bool {
		over := now.Sub(b.sent) - q.client.Timeout
		if b.late = over >= 0; b.late {
			lag, keys = max(lag, over), append(keys, b.key)
		} else if !q.armed {
			q.arm(-over)
		}
		return b.late
	})
	if len(q.queue) > 0 && len(keys) > 0 {
		q.wakeWorker()
	}
	q.mu.Unlock()
	if len(keys) == 0 || q.processLate(max(lag, yieldTime())) {
		return
	}
	for _, key := range keys {
		q.breaker.failed(key, UnknownOutcome, errLate)
	}
}

// yieldTime is how long a goroutine of this process waits for a processor.
func yieldTime() time.Duration {
	began := time.Now()
	runtime.Gosched()
	return time.Since(began)
}

// processLate reports whether this process, and not the node, is the likely reason
// for a late reply: it was late itself, and the node has replied lately.
func (q *Node) processLate(lag time.Duration) bool {
	if lag < q.client.Timeout/2 || !q.trips.answeredWithin(max(5*q.client.Timeout, 4*lag)) {
		return false
	}
	q.client.host.ProcessLate(lag)
	return true
}

// patience is how much longer the caller of r waits after its timeout: nothing, unless this process is
// late itself. Then it waits on in steps of the timeout, for as long as late replies are awaited.
func (q *Node) patience(ctx context.Context, r *Request) time.Duration {
	now := time.Now()
	lag := max(now.Sub(time.UnixMicro(r.until.Load())), yieldTime())
	if HasLeft(ctx) || now.Sub(r.began) > q.client.ReplyTimeout() || !q.processLate(lag) {
		return 0
	}
	r.until.Store(now.Add(q.client.Timeout).UnixMicro())
	return q.client.Timeout
}

// reportDistance reports a node whose replies come, but after the timeout.
func (q *Node) reportDistance() bool {
	median, p99 := q.trips.quantiles()
	if median < q.client.Timeout || !q.trips.answeredWithin(q.client.ReplyTimeout()+2*q.client.ProbeInterval) {
		return false
	}
	q.client.host.Far(q.addr, median, p99)
	return true
}
