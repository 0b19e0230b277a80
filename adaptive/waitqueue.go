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

// waitQueue is the queue of a running limiter, under a lock. flows decides which class and tenant is
// next, the discipline which request of theirs.
//
// No wakeup is lost: a request enters the queue and then looks for a slot, a release frees a slot
// and then looks at the queue, so the later of the two sees the other. The next request, or a timer
// that runs only while requests wait, notices a limit that rises without a release.
type waitQueue struct {
	limiter *Limiter
	queue   Queue
	length  atomic.Int64 // written under mu

	mu     sync.Mutex
	flows  flows
	poller *time.Timer
	closed bool
}

// pollEvery bounds how late a rise of the limit without a release is noticed.
const pollEvery = 10 * time.Millisecond

// waiter is one request in the queue. The queue's lock guards its fields until
// ready is closed.
type waiter struct {
	older, newer *waiter
	flow         *flow
	arrival      uint64
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

// wait takes slots in turn. An error means that ctx or the limiter has ended.
func (q *waitQueue) wait(ctx context.Context, a *arrival) (f found, err error) {
	if err := ctx.Err(); err != nil {
		return f, err
	}
	w, longest, err := q.enter(ctx, a)
	if err != nil || w == nil {
		return found{cause: cause.Queue}, err
	}
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-w.ready:
	case <-timer.C:
	case <-ctx.Done():
	}
	c, err := q.leave(ctx, w)
	return found{w.inFlight, w.limit, c}, err
}

// enter puts a request into the queue and serves the first in turn. The waiter is nil if requests
// that go before it fill the queue.
func (q *waitQueue) enter(ctx context.Context, a *arrival) (*waiter, time.Duration, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, 0, ErrClosed
	}
	at, key := q.limiter.machine.Now(), flowKey{Class(a.rank / places), a.tenant}
	q.serve(at)
	longest := q.queue.wait
	if q.standing(key, at) {
		longest = q.queue.target
	}
	var out *waiter
	if q.length.Load() >= int64(q.queue.length) {
		if out = q.evictFor(key, a, at); out == nil {
			return nil, 0, nil
		}
	}
	if deadline, ok := ctx.Deadline(); ok {
		longest = min(longest, max(time.Until(deadline), 0)) // a ctx need not have a timer
	}
	w := &waiter{n: a.n, deadline: at + min(int64(longest), math.MaxInt64-at), ready: make(chan struct{})}
	q.push(key, w, a, at)
	if out != nil {
		q.dismiss(out, evicted)
	}
	q.serve(at)
	return w, longest, nil
}

// evictFor returns the request that makes room in a full queue for another one; nil if that one would be
// last.
func (q *waitQueue) evictFor(key flowKey, a *arrival, at int64) *waiter {
	last := q.flows.lastWith(key, a)
	switch {
	case last == nil:
		return nil
	case q.standing(last.flowKey, at):
		return last.oldest
	case last.flowKey == key:
		return nil
	}
	return last.newest
}

// leave ends the wait of w, which may have got a slot or a denial meanwhile.
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
	}
	return cause.Queue, nil
}

// ended returns ctx.Err(), or DeadlineExceeded once the deadline has passed, even if ctx's timer is
// late or absent.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// admit serves the queue after a release, at the cost of one load if it is empty.
func (q *waitQueue) admit() {
	if q.length.Load() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock() // a strategy's Limit may panic
	q.serve(q.limiter.machine.Now())
}

// serve admits requests in turn while the next one fits, and dismisses those past their deadline.
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
		f := q.limiter.enter(w.n)
		w.inFlight, w.limit = f.inFlight, f.limit
		if f.cause != cause.None {
			return
		}
		q.dismiss(w, admitted)
	}
}

// next returns the request to serve next, nil if the queue is empty.
func (q *waitQueue) next(at int64) *waiter {
	if len(q.flows.first.all) == 0 {
		return nil
	}
	first := q.flows.first.all[0]
	if q.standing(first.flowKey, at) {
		return first.newest
	}
	return first.oldest
}

// standing reports whether requests of the flow were waiting at every moment of the last interval.
func (q *waitQueue) standing(key flowKey, at int64) bool {
	return q.queue.discipline == codel && q.flows.standing(key, at, int64(q.queue.wait))
}

// poll serves the queue without a request or a release, and again later while requests wait.
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
	if r == admitted {
		q.flows.serve(w)
	}
	q.remove(w)
	w.result = r
	close(w.ready)
}

func (q *waitQueue) push(key flowKey, w *waiter, a *arrival, at int64) {
	q.flows.push(key, w, a, at)
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
	q.flows.remove(w)
	if q.length.Add(-1) == 0 {
		q.poller.Stop()
	}
}

// close dismisses every request in the queue, and all later ones.
func (q *waitQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for w := q.next(0); w != nil; w = q.next(0) {
		q.dismiss(w, closed)
	}
}
