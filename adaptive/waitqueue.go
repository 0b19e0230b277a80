package adaptive

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
)

// waitQueue is the queue of a running limiter, under a lock. Requests of a higher rank are
// served first, see order; those of one rank in the order of the discipline.
//
// No wakeup is lost. A request enters the queue and then looks for a slot; a
// release frees a slot and then looks at the queue. The later of the two sees the
// effect of the other. A limit that rises without a release is noticed by the next
// request, or by a timer that runs only while requests wait.
type waitQueue struct {
	limiter *Limiter
	queue   Queue
	length  atomic.Int64 // written under mu

	mu      sync.Mutex
	waiters [ranks]waitList // by rank
	poller  *time.Timer
	closed  bool
}

// pollEvery bounds the time in which a limit that rose without a release is noticed.
const pollEvery = 10 * time.Millisecond

// waiter is one request in the queue. The queue's lock guards its fields until
// ready is closed.
type waiter struct {
	older, newer *waiter // of its rank
	rank         rank
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
	overLimit
	closed
)

// acquire takes n slots, at once if no request waits and they are free, otherwise in
// turn. The cause is None if it got them. An error means that the context or the
// limiter has ended.
func (q *waitQueue) acquire(ctx context.Context, n int64, r rank) (inFlight, limit int64, c algo.Cause, err error) {
	if q.length.Load() == 0 {
		if inFlight, limit, c = q.limiter.enter(n); c == cause.None {
			return inFlight, limit, cause.None, nil
		}
	}
	return q.wait(ctx, n, r)
}

// wait takes n slots in turn.
func (q *waitQueue) wait(ctx context.Context, n int64, r rank) (inFlight, limit int64, c algo.Cause, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, cause.None, err
	}
	w, longest, err := q.enter(ctx, n, r)
	if err != nil || w == nil {
		return 0, 0, cause.Queue, err
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
// nil if the queue is full of requests that go before it.
func (q *waitQueue) enter(ctx context.Context, n int64, r rank) (*waiter, time.Duration, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, 0, ErrClosed
	}
	at := q.limiter.machine.Now()
	q.serve(at)
	if q.waiters[r].oldest == nil {
		q.waiters[r].emptyAt = at
	}
	longest := q.queue.wait
	standing := q.standing(r, at)
	if standing {
		longest = q.queue.target
	}
	if q.length.Load() >= int64(q.queue.length) {
		last := q.last()
		if last.rank < r || last.rank == r && !standing {
			return nil, 0, nil
		}
		q.dismiss(last, evicted)
	}
	if deadline, ok := ctx.Deadline(); ok {
		longest = min(longest, max(time.Until(deadline), 0)) // a ctx need not have a timer
	}
	w := &waiter{rank: r, n: n, deadline: at + min(int64(longest), math.MaxInt64-at), ready: make(chan struct{})}
	q.push(w)
	q.serve(at)
	return w, longest, nil
}

// leave ends the wait of w, which may have a slot, a denial or neither by now.
func (q *waitQueue) leave(ctx context.Context, w *waiter) (algo.Cause, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	canceled := ended(ctx)
	switch {
	case w.result == closed:
		return cause.None, ErrClosed
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
		return cause.None, canceled
	case w.result == admitted:
		return cause.None, nil
	case w.result == overLimit:
		return cause.Limit, nil
	}
	return cause.Queue, nil
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
	defer q.mu.Unlock() // a strategy's Limit may panic
	q.serve(q.limiter.machine.Now())
}

// serve admits requests in turn, as long as the next one fits, and dismisses those
// beyond their deadline, and those that would not fit alone: the rest would wait in vain.
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
		w.inFlight, w.limit = inFlight, limit
		if c != cause.None && w.n > limit {
			q.dismiss(w, overLimit)
			continue
		}
		if c != cause.None {
			return
		}
		q.dismiss(w, admitted)
	}
}

// next is the request to serve next, nil if the queue is empty.
func (q *waitQueue) next(at int64) *waiter {
	for r := range q.waiters {
		if l := &q.waiters[r]; l.oldest != nil {
			if q.standing(rank(r), at) {
				return l.newest
			}
			return l.oldest
		}
	}
	return nil
}

// last is the oldest request of the lowest rank, nil if the queue is empty.
func (q *waitQueue) last() *waiter {
	for r := ranks - 1; r >= 0; r-- {
		if w := q.waiters[r].oldest; w != nil {
			return w
		}
	}
	return nil
}

// standing reports whether requests of a rank have been waiting for a whole interval, without
// a moment in which none did.
func (q *waitQueue) standing(r rank, at int64) bool {
	l := &q.waiters[r]
	return q.queue.discipline == codel && l.oldest != nil && at-l.emptyAt > int64(q.queue.wait)
}

// poll serves without a request or a release, and again while requests wait.
func (q *waitQueue) poll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.serve(q.limiter.machine.Now())
	if q.length.Load() > 0 {
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
	q.waiters[w.rank].push(w)
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
	q.waiters[w.rank].remove(w)
	if q.length.Add(-1) == 0 {
		q.poller.Stop()
	}
}

// close dismisses every request in the queue, and all later ones.
func (q *waitQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for w := q.last(); w != nil; w = q.last() {
		q.dismiss(w, closed)
	}
}

// waitList is a doubly linked list.
type waitList struct {
	oldest, newest *waiter
	emptyAt        int64 // last instant at which a request found it empty
}

func (l *waitList) push(w *waiter) {
	w.older = l.newest
	if l.newest != nil {
		l.newest.newer = w
	} else {
		l.oldest = w
	}
	l.newest = w
}

func (l *waitList) remove(w *waiter) {
	if w.older != nil {
		w.older.newer = w.newer
	} else {
		l.oldest = w.newer
	}
	if w.newer != nil {
		w.newer.older = w.older
	} else {
		l.newest = w.older
	}
	w.older, w.newer = nil, nil
}
