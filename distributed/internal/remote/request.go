package remote

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Request is a question to Redis about one or more keys, and its reply. The
// side that changes its state from pending owns it afterwards: the node that has
// the reply, or the caller that stops waiting.
type Request struct {
	Script *Script
	Keys   []string
	Args   []int64
	Twice  bool // a correction that may be executed twice
	Renews bool // a correction that another one follows, so its loss does not count

	// Name, Limit and N describe the charge, if the request makes one: for Undo and for logs.
	Name  string
	Limit any
	N     int64
	Undo  Undoer // nil: a late reply changes nothing

	Now   int64   // the server's time in microseconds
	Reply []int64 // Script.Replies integers for each key
	Err   error
	Sent  time.Time // when the command left, on this process's clock

	state  atomic.Uint32
	done   chan struct{} // receives one token with the reply
	timer  *time.Timer
	began  time.Time    // when its caller asked
	until  atomic.Int64 // when its caller stops waiting, in microseconds
	oneWay bool         // no caller waits for the reply: a correction

	oneKey  [1]string
	oneArgs Args
	replies [MaxReplies]int64
}

// Undoer refunds the charge of a request whose caller has stopped waiting.
type Undoer interface{ UndoCharge(*Request) }

const (
	pending uint32 = iota
	completed
	abandoned
)

var requests = sync.Pool{New: func() any {
	return &Request{done: make(chan struct{}, 1), timer: newTimer()}
}}

// FreshRequests empties the pool for tests: the timers and channels of a bubble of
// testing/synctest belong to that bubble.
func FreshRequests() { requests = sync.Pool{New: requests.New} }

func newTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// NewRequest makes a request about key. To ask about several, replace Keys, Args and Reply.
func NewRequest(s *Script, key string, a Args) *Request {
	r := requests.Get().(*Request)
	r.Script = s
	r.oneKey[0] = key
	r.Keys = r.oneKey[:]
	r.oneArgs = a
	r.Args = r.oneArgs[:s.Args]
	if s.Replies <= MaxReplies {
		r.Reply = r.replies[:s.Replies]
	} else {
		r.Reply = make([]int64, s.Replies)
	}
	r.Err, r.oneWay, r.Twice, r.Renews, r.N = nil, false, false, false, 0
	r.state.Store(pending)
	return r
}

// NewPair makes a request about key, with arguments a, and record, with arguments b.
func NewPair(s *Script, key, record string, a, b Args) *Request {
	r := NewRequest(s, key, a)
	r.Keys = []string{key, record}
	r.Args = slices.Concat(a[:s.Args], b[:s.Args])
	r.Reply = make([]int64, 2*s.Replies)
	return r
}

// Free returns the request to the pool. Only its owner may call it.
func (r *Request) Free() {
	r.oneKey[0], r.Name, r.Limit, r.Undo = "", "", nil, nil
	r.Keys, r.Args, r.Reply = nil, nil, nil
	requests.Put(r)
}

// Answer is the part of a reply that concerns one key.
type Answer struct {
	Now   int64
	Args  []int64
	Reply []int64
}

// FlagMixed is added to the last reply about a key if other parameters are in use on it.
const FlagMixed = 4

// Flag returns the last reply about the key, without FlagMixed.
func (a Answer) Flag() int64 { return a.Reply[len(a.Reply)-1] &^ FlagMixed }

// Mixed reports whether other parameters are in use on the key.
func (a Answer) Mixed() bool { return a.Reply[len(a.Reply)-1]&FlagMixed != 0 }

// Answer returns the reply about the i-th key.
func (r *Request) Answer(i int) Answer {
	n, k := r.Script.Replies, r.Script.Args
	return Answer{r.Now, r.Args[i*k:][:k], r.Reply[i*n:][:n]}
}

// wait waits until r has a reply, ctx ends or the timeout passes and more does not extend it. It
// reports false if it has abandoned r, which then no longer belongs to the caller.
func (r *Request) wait(ctx context.Context, timeout time.Duration, more func(context.Context, *Request) time.Duration) bool {
	defer r.timer.Stop()
	for timeout > 0 {
		r.timer.Reset(timeout)
		select {
		case <-r.done:
			return true
		case <-ctx.Done():
			timeout = 0
		case <-r.timer.C:
			timeout = more(ctx, r)
		}
	}
	if r.state.CompareAndSwap(pending, abandoned) {
		return false
	}
	<-r.done
	return true
}

// complete wakes the caller, or refunds the charge if the caller has stopped waiting.
func (r *Request) complete() {
	switch {
	case r.oneWay:
	case r.state.CompareAndSwap(pending, completed):
		r.done <- struct{}{}
		return
	case r.Undo != nil:
		r.Undo.UndoCharge(r)
	}
	r.Free()
}
