package distributed

import (
	"sync"
	"sync/atomic"
	"time"
)

// entry is one question on its way to Redis. Whoever wins the change of its
// state from waiting owns it: the caller who gives up, or the lane that has
// the answer.
type entry struct {
	script *script
	keys   []string
	args   []int64
	state  atomic.Uint32
	done   chan struct{} // gets one token with the answer
	timer  *time.Timer
	alone  bool // nobody waits for the answer

	// Whose charge it is, if it is one, so that it can be taken back when the
	// answer comes after the caller has given up.
	owner *Limiter
	limit limit
	n     int64
	late  func(*entry) // the same for several charges at once

	// The answer.
	now   int64   // the server's time in microseconds
	reply []int64 // script.replies integers for each key
	err   error
	sent  time.Time // when the command went out, on this process' clock

	oneKey  [1]string
	few     args
	answers [mostReplies]int64
}

const (
	waiting uint32 = iota
	answered
	abandoned
)

var entries = sync.Pool{New: func() any {
	return &entry{done: make(chan struct{}, 1), timer: newTimer()}
}}

func newTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// ask makes an entry about one key.
func ask(s *script, key string, a args) *entry {
	e := entries.Get().(*entry)
	e.script = s
	e.oneKey[0] = key
	e.keys = e.oneKey[:]
	e.few = a
	e.args = e.few[:s.args]
	e.reply = e.answers[:s.replies]
	e.err = nil
	e.alone, e.owner, e.limit, e.n, e.late = false, nil, nil, 0, nil
	e.state.Store(waiting)
	return e
}

// free gives the entry back to the pool. Only its owner may.
func (e *entry) free() {
	e.oneKey[0], e.owner, e.limit, e.late = "", nil, nil, nil
	e.keys, e.args, e.reply = nil, nil, nil
	entries.Put(e)
}

// take copies the entry's part of a command's reply.
func (e *entry) take(now int64, part []int64, sent time.Time) {
	e.now, e.sent = now, sent
	copy(e.reply, part)
}
