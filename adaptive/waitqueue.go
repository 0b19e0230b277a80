package adaptive

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// waitQueue is the queue of a running limiter: a doubly linked list under a lock,
// oldest first.
//
// No wakeup is lost. A request enters the queue and then looks for a slot; a
// release frees a slot and then looks at the queue. The later of the two sees the
// effect of the other. A limit that rises without a release is noticed by the next
// request, or by a timer that runs only while requests wait.
type waitQueue struct {
	limiter *Limiter
	queue   Queue
	length  atomic.Int64 // written under mu

	mu             sync.Mutex
	oldest, newest *waiter
	emptyAt        int64 // last instant at which the queue was empty
	poller         *time.Timer
	closed         bool
}

// pollEvery bounds the time in which a limit that rose without a release is
// noticed.
const pollEvery = 10 * time.Millisecond

// waiter is one request in the queue. The queue's lock guards its fields until
// ready is closed.
type waiter struct {
	older, newer *waiter
	n            int64
	deadline     int64
	ready        chan struct{}
	result       result
	inFlight     int64 // at the admission
	limit        int64
}

type result uint8

const (
	waiting result = iota
	admitted
	evicted
	expired
	closed
)

func newWaitQueue(l *Limiter, q Queue) *waitQueue {
	return &waitQueue{limiter: l, queue: q, emptyAt: l.machine.Now()}
}

// acquire takes n slots, at once if no request waits and they are free, otherwise in
// turn. The cause is none if it got them. An error means that the context or the
// limiter has ended.
func (q *waitQueue) acquire(ctx context.Context, n int64) (inFlight, limit int64, c cause, err error) {
	if q.length.Load() == 0 {
		if inFlight, limit, c = q.limiter.enter(n); c == none {
			return inFlight, limit, none, nil
		}
	}
	return q.wait(ctx, n)
}

// wait takes n slots in turn.
func (q *waitQueue) wait(ctx context.Context, n int64) (inFlight, limit int64, c cause, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, none, err
	}
	w, longest, err := q.enter(ctx, n)
	if err != nil || w == nil {
		return 0, 0, byFullQueue, err
	}
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-w.ready:
	case <-timer.C:
	case <-ctx.Done():
	}
	c, err = q.leave(ctx, w)
	return w.inFlight, w.limit, c, err
}

// enter puts a request into the queue and serves the first in turn. The waiter is
// nil if the queue is full.
func (q *waitQueue) enter(ctx context.Context, n int64) (*waiter, time.Duration, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, 0, ErrClosed
	}
	at := q.limiter.machine.Now()
	if q.oldest == nil {
		q.emptyAt = at
	}
	q.serve(at)
	longest := q.queue.wait
	standing := q.standing(at)
	if standing {
		longest = q.queue.target
	}
	if q.length.Load() >= int64(q.queue.length) {
		if !standing {
			return nil, 0, nil
		}
		q.dismiss(q.oldest, evicted)
	}
	if deadline, ok := ctx.Deadline(); ok {
		longest = min(longest, max(time.Until(deadline), 0)) // a ctx need not have a timer
	}
	w := &waiter{n: n, deadline: at + int64(longest), ready: make(chan struct{})}
	q.push(w)
	q.serve(at)
	return w, longest, nil
}

// leave ends the wait of w, which may have a slot, a denial or neither by now.
func (q *waitQueue) leave(ctx context.Context, w *waiter) (cause, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	canceled := ended(ctx)
	switch {
	case w.result == closed:
		return none, ErrClosed
	case w.result == admitted && canceled != nil:
		q.limiter.inFlight.Add(-w.n) // the caller is gone and will not use the slot
	case w.result == waiting:
		q.remove(w)
	}
	if canceled != nil || w.result == waiting {
		q.serve(q.limiter.machine.Now()) // a large request may have blocked others
	}
	switch {
	case canceled != nil:
		return none, canceled
	case w.result == admitted:
		return none, nil
	case w.result == evicted:
		return byFullQueue, nil
	}
	return byLongWait, nil
}

// ended is the error of ctx, or the one that it has from its deadline on: its own
// timer may be late, or it may have none.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// admit serves the queue after a release. It costs one load if the queue is empty.
func (q *waitQueue) admit() {
	if q.length.Load() == 0 {
		return
	}
	q.mu.Lock()
	q.serve(q.limiter.machine.Now())
	q.mu.Unlock()
}

// serve admits requests in turn, as long as the next one fits, and dismisses those
// beyond their deadline.
func (q *waitQueue) serve(at int64) {
	for {
		w := q.next(at)
		if w == nil {
			return
		}
		if at >= w.deadline {
			q.dismiss(w, expired)
			continue
		}
		inFlight, limit, c := q.limiter.enter(w.n)
		if c != none {
			return
		}
		w.inFlight, w.limit = inFlight, limit
		q.dismiss(w, admitted)
	}
}

// next is the request to serve next, nil if the queue is empty.
func (q *waitQueue) next(at int64) *waiter {
	if q.standing(at) {
		return q.newest
	}
	return q.oldest
}

// standing reports whether the queue has not been empty for a whole interval.
func (q *waitQueue) standing(at int64) bool {
	return q.queue.kind == codel && q.oldest != nil && at-q.emptyAt > int64(q.queue.wait)
}

// poll serves without a request or a release, and again while requests wait.
func (q *waitQueue) poll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.serve(q.limiter.machine.Now())
	if q.oldest != nil {
		q.poller.Reset(pollEvery)
	}
}

// dismiss removes w from the queue with a result.
func (q *waitQueue) dismiss(w *waiter, r result) {
	q.remove(w)
	w.result = r
	close(w.ready)
}

func (q *waitQueue) push(w *waiter) {
	w.older = q.newest
	if q.newest != nil {
		q.newest.newer = w
	} else {
		q.oldest = w
	}
	q.newest = w
	if q.length.Add(1) > 1 {
		return
	}
	if q.poller == nil {
		q.poller = time.AfterFunc(pollEvery, q.poll)
	} else {
		q.poller.Reset(pollEvery)
	}
}

func (q *waitQueue) remove(w *waiter) {
	if w.older != nil {
		w.older.newer = w.newer
	} else {
		q.oldest = w.newer
	}
	if w.newer != nil {
		w.newer.older = w.older
	} else {
		q.newest = w.older
	}
	w.older, w.newer = nil, nil
	if q.length.Add(-1) == 0 {
		q.emptyAt = q.limiter.machine.Now()
		q.poller.Stop()
	}
}

// close dismisses every request in the queue, and all later ones.
func (q *waitQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for q.oldest != nil {
		q.dismiss(q.oldest, closed)
	}
}
