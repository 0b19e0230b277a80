package adaptive

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// line is the queue of a limiter while it runs: a doubly linked list under a
// lock, oldest first.
//
// No wakeup is lost. A request enters the line and then looks for a place; a
// release frees a place and then looks at the line. Whichever comes second
// sees what the other did. A limit that rises without a release is noticed by
// the next request, or by a timer that runs only while somebody waits.
type line struct {
	limiter *Limiter
	queue   Queue
	length  atomic.Int64 // written under mu

	mu             sync.Mutex
	oldest, newest *waiter
	emptyAt        int64 // last instant at which nobody was known to wait
	looker         *time.Timer
	closed         bool
}

// lookEvery is how long a limit that rose on its own may go unnoticed.
const lookEvery = 10 * time.Millisecond

// waiter is one request in the line. Its fields belong to the line's lock,
// until ready is closed.
type waiter struct {
	older, newer *waiter
	n            int64
	until        int64 // when it gives up
	ready        chan struct{}
	verdict      verdict
	inFlight     int64 // at admission
	limit        int64
}

type verdict uint8

const (
	waiting verdict = iota
	admitted
	evicted
	late
	shut
)

func newLine(l *Limiter, q Queue) *line { return &line{limiter: l, queue: q, emptyAt: now()} }

// wait takes n places as soon as it is the request's turn. The cause is none
// if it got them; an error means that the context or the limiter has ended.
func (q *line) wait(ctx context.Context, n int64) (inFlight, limit int64, c cause, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, none, err
	}
	w, patience, err := q.join(n)
	if err != nil || w == nil {
		return 0, 0, byFullQueue, err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.ready:
	case <-timer.C:
	case <-ctx.Done():
	}
	c, err = q.leave(ctx, w)
	return w.inFlight, w.limit, c, err
}

// join enters a request into the line and looks for a place for whoever is
// first. The waiter is nil if the line is full.
func (q *line) join(n int64) (*waiter, time.Duration, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, 0, ErrClosed
	}
	at := now()
	if q.oldest == nil {
		q.emptyAt = at
	}
	q.serve(at)
	patience := q.queue.wait
	standing := q.stands(at)
	if standing {
		patience = q.queue.target
	}
	if q.length.Load() >= int64(q.queue.places) {
		if !standing {
			return nil, 0, nil
		}
		q.dismiss(q.oldest, evicted)
	}
	w := &waiter{n: n, until: at + int64(patience), ready: make(chan struct{})}
	q.push(w)
	q.serve(at)
	return w, patience, nil
}

// leave is how every request gets out of the line: with what it was given, or
// without.
func (q *line) leave(ctx context.Context, w *waiter) (cause, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	gone := ctx.Err()
	switch {
	case w.verdict == shut:
		return none, ErrClosed
	case w.verdict == admitted && gone != nil:
		q.limiter.inFlight.Add(-w.n) // nobody is there to use the place
	case w.verdict == waiting:
		q.remove(w)
	}
	if gone != nil || w.verdict == waiting {
		q.serve(now()) // a large request may have stood in the way of others
	}
	switch {
	case gone != nil:
		return none, gone
	case w.verdict == admitted:
		return none, nil
	case w.verdict == evicted:
		return byFullQueue, nil
	}
	return byLongWait, nil
}

// admit looks for places for those who wait. It costs one load if nobody does.
func (q *line) admit() {
	if q.length.Load() == 0 {
		return
	}
	q.mu.Lock()
	q.serve(now())
	q.mu.Unlock()
}

// serve admits one request after the other, as long as the next one fits, and
// sends away those whose time is over.
func (q *line) serve(at int64) {
	for {
		w := q.next(at)
		if w == nil {
			return
		}
		if at >= w.until {
			q.dismiss(w, late)
			continue
		}
		inFlight, limit, ok := q.limiter.enter(w.n)
		if !ok {
			return
		}
		w.inFlight, w.limit = inFlight, limit
		q.dismiss(w, admitted)
	}
}

// next is whose turn it is.
func (q *line) next(at int64) *waiter {
	if q.stands(at) {
		return q.newest
	}
	return q.oldest
}

// stands reports whether the queue has not been empty for a whole interval.
func (q *line) stands(at int64) bool {
	return q.queue.kind == codel && q.oldest != nil && at-q.emptyAt > int64(q.queue.wait)
}

// look serves when nothing else has made it, and again while somebody waits.
func (q *line) look() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.serve(now())
	if q.oldest != nil {
		q.looker.Reset(lookEvery)
	}
}

// dismiss takes w out of the line and tells it why.
func (q *line) dismiss(w *waiter, v verdict) {
	q.remove(w)
	w.verdict = v
	close(w.ready)
}

func (q *line) push(w *waiter) {
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
	if q.looker == nil {
		q.looker = time.AfterFunc(lookEvery, q.look)
	} else {
		q.looker.Reset(lookEvery)
	}
}

func (q *line) remove(w *waiter) {
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
		q.emptyAt = now()
		q.looker.Stop()
	}
}

// close sends everybody away, and whoever comes later.
func (q *line) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for q.oldest != nil {
		q.dismiss(q.oldest, shut)
	}
}
