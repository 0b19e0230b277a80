package distributed

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// request is a question to Redis about one key or several, and its reply. The
// side that changes its state from pending owns it afterwards: the caller that
// stops waiting, or the node queue that has the reply.
type request struct {
	script *script
	keys   []string
	args   []int64
	state  atomic.Uint32
	done   chan struct{} // receives one token with the reply
	timer  *time.Timer
	until  time.Time // when its caller stops waiting
	oneWay bool      // no caller waits for the reply: a correction
	twice  bool      // of a correction: it may be executed twice

	// limiter, limit and n describe the charge, if the request makes one.
	limiter *Limiter
	limit   limit
	n       int64
	undo    undoer // nil: a late reply changes nothing

	now   int64   // the server's time in microseconds
	reply []int64 // script.replies integers for each key
	err   error
	sent  time.Time // when the command left, on this process's clock

	oneKey  [1]string
	oneArgs args
	replies [maxReplies]int64
}

// undoer undoes the charge of a request whose caller has stopped waiting.
type undoer interface{ undoCharge(*request) }

const (
	pending uint32 = iota
	completed
	abandoned
)

var requests = sync.Pool{New: func() any {
	return &request{done: make(chan struct{}, 1), timer: newTimer()}
}}

func newTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// newRequest makes a request about one key.
func newRequest(s *script, key string, a args) *request {
	r := requests.Get().(*request)
	r.script = s
	r.oneKey[0] = key
	r.keys = r.oneKey[:]
	r.oneArgs = a
	r.args = r.oneArgs[:s.args]
	if s.replies <= maxReplies {
		r.reply = r.replies[:s.replies]
	} else {
		r.reply = make([]int64, s.replies)
	}
	r.err, r.oneWay, r.twice, r.n = nil, false, false, 0
	r.state.Store(pending)
	return r
}

// free returns the request to the pool. Only its owner may call it.
func (r *request) free() {
	r.oneKey[0], r.limiter, r.limit, r.undo = "", nil, nil, nil
	r.keys, r.args, r.reply = nil, nil, nil
	requests.Put(r)
}

// answer is the part of a reply that concerns one key.
type answer struct {
	now   int64
	args  []int64
	reply []int64
}

// flag is the last reply of every script, without flagMixed.
func (a answer) flag() int64 { return a.reply[len(a.reply)-1] &^ flagMixed }

// mixed reports that other parameters are in use on the key.
func (a answer) mixed() bool { return a.reply[len(a.reply)-1]&flagMixed != 0 }

// answer is the reply about the i-th key.
func (r *request) answer(i int) answer {
	n, k := r.script.replies, r.script.args
	return answer{r.now, r.args[i*k:][:k], r.reply[i*n:][:n]}
}

// wait returns when r is answered, the timeout has passed or ctx ends. It
// reports false if r is abandoned and no longer belongs to the caller.
func (r *request) wait(ctx context.Context, timeout time.Duration) bool {
	r.timer.Reset(timeout)
	defer r.timer.Stop()
	select {
	case <-r.done:
		return true
	case <-r.timer.C:
	case <-ctx.Done():
	}
	if r.state.CompareAndSwap(pending, abandoned) {
		return false
	}
	<-r.done
	return true
}

// complete delivers the reply to the caller, or undoes the charge if the caller
// has stopped waiting.
func (r *request) complete() {
	switch {
	case r.oneWay:
	case r.state.CompareAndSwap(pending, completed):
		r.done <- struct{}{}
		return
	case r.undo != nil:
		r.undo.undoCharge(r)
	}
	r.free()
}

// do sends r and waits for the reply. True: r has a reply, which may be an
// error, and belongs to the caller. False: there is no reply, and r is gone.
//
// A lone caller does not run its own command, which would save a third of the client's
// processor time: go-redis closes the connection of a reply that is late, so its charge could
// not be refunded; it dials for longer than the timeout; and it heeds no cancelation while it
// reads.
func (s *Store) do(ctx context.Context, r *request) bool {
	if hasLeft(ctx) {
		r.free()
		return false
	}
	r.until = time.Now().Add(s.timeout)
	if at, ok := ctx.Deadline(); ok && at.Before(r.until) {
		r.until = at
	}
	return s.submit(r) && r.wait(ctx, s.timeout)
}

// hasLeft reports whether a caller has left. The timer of its context may be late.
func hasLeft(ctx context.Context) bool {
	at, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(at)
}

// noReply is the error of a command that Redis must execute, named by what, after do has
// reported false.
func noReply(ctx context.Context, what, name string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %s %q: %w", ErrUnavailable, what, name, err)
	}
	return fmt.Errorf("%w: %s %q: no reply", ErrUnavailable, what, name)
}

// send sends a correction and does not wait; see [corrections].
func (s *Store) send(r *request) {
	r.oneWay = true
	for range 2 {
		if s.router.queue(r.keys[0]).keep(r) {
			return
		}
	}
	s.lose(r, ErrClosed)
}

// submit queues r to its node, unless the node is away: then r is gone. The queue
// that was found may have been closed meanwhile, because its node has gone.
func (s *Store) submit(r *request) bool {
	for range 2 {
		q := s.router.queue(r.keys[0])
		if !q.breaker.allow() {
			break
		}
		if q.submit(r) {
			return true
		}
	}
	r.free()
	return false
}
