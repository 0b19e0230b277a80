package distributed

import (
	"fmt"
	"runtime"
	"time"
)

// arm sets the timer that looks for late batches. The caller holds q.mu.
func (q *nodeQueue) arm(d time.Duration) {
	q.armed = true
	if q.overdue == nil {
		q.overdue = time.AfterFunc(d, q.expire)
	} else {
		q.overdue.Reset(d)
	}
}

// expire marks late batches, so that the next ones can leave. It runs at most
// once in each timeout, and not while the queue is idle.
func (q *nodeQueue) expire() {
	now := time.Now()
	var lag time.Duration // how late this process itself is
	var keys []string
	q.mu.Lock()
	q.armed = false
	for _, b := range append([]*batch(nil), q.onWire...) {
		over := now.Sub(b.sent) - q.store.timeout
		if over < 0 {
			if !q.armed {
				q.arm(-over)
			}
			continue
		}
		lag = max(lag, over)
		b.late = true
		keys = append(keys, b.key)
		q.remove(b)
	}
	if len(q.queue) > 0 && len(keys) > 0 {
		q.wakeWorker()
	}
	q.mu.Unlock()
	if len(keys) == 0 || q.processLate(max(lag, yieldTime())) {
		return
	}
	for _, key := range keys {
		q.breaker.failed(key, unknownOutcome, errLate)
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
func (q *nodeQueue) processLate(lag time.Duration) bool {
	if lag < q.store.timeout/2 || !q.trips.answeredWithin(max(5*q.store.timeout, 4*lag)) {
		return false
	}
	if q.store.mayLog(processLate) {
		q.store.logger.Warn("distributed: this process is late: it has too little CPU, or was paused; decisions are local meanwhile",
			"late", lag, "timeout", q.store.timeout)
		q.store.emit(Event{Kind: ProcessLate})
	}
	return true
}

// reportDistance reports a node whose replies come, but after the timeout.
func (q *nodeQueue) reportDistance() bool {
	median, p99 := q.trips.quantiles()
	if median < q.store.timeout || !q.trips.answeredWithin(q.store.replyTimeout()+2*q.store.probeInterval) {
		return false
	}
	if q.store.mayLog(farAway) {
		e := Event{Kind: FarAway, Node: q.addr, RoundTrip: median}
		q.store.logger.Warn(fmt.Sprintf("distributed: answers take %v, the timeout is %v: limits are local; see WithTimeout",
			median.Round(time.Millisecond/10), q.store.timeout), append([]any{"p99", p99}, e.logged()...)...)
		q.store.emit(e)
	}
	return true
}
