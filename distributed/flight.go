package distributed

import (
	"context"
	"time"
)

// flight is a batch on the wire that is not late.
type flight struct {
	first *entry // of the batch; nil: the seat is free
	sent  time.Time
}

// board notes that a batch leaves. The caller holds l.mu.
func (l *lane) board(batch []*entry) (seat int) {
	for l.flights[seat].first != nil {
		seat++
	}
	l.flights[seat] = flight{batch[0], time.Now()}
	l.flying++
	if !l.armed {
		l.arm(l.store.timeout)
	}
	return seat
}

// land notes that a batch is back and reports whether it was late. The caller
// holds l.mu.
func (l *lane) land(seat int, batch []*entry) (late bool) {
	if f := &l.flights[seat]; f.first == batch[0] {
		f.first = nil
		l.flying--
		return false
	}
	return true
}

func (l *lane) arm(d time.Duration) {
	l.armed = true
	if l.watch == nil {
		l.watch = time.AfterFunc(d, l.look)
	} else {
		l.watch.Reset(d)
	}
}

// look frees the seats of batches that are late, so that the next ones can
// leave. It runs at most once in each timeout, and not while the lane is idle.
func (l *lane) look() {
	l.mu.Lock()
	l.armed = false
	now := time.Now()
	var overdue []string
	for i := range l.flights {
		f := &l.flights[i]
		if f.first == nil {
			continue
		}
		left := l.store.timeout - now.Sub(f.sent)
		if left <= 0 {
			overdue = append(overdue, f.first.keys[0])
			f.first = nil
			l.flying--
		} else if !l.armed {
			l.arm(left)
		}
	}
	if len(l.queue) > 0 && len(overdue) > 0 {
		l.rouse()
	}
	l.mu.Unlock()
	for _, key := range overdue {
		l.breaker.failed(key, unknown, errLate)
	}
}

// fly sends a batch.
func (l *lane) fly(batch []*entry) (cmds []*command, sent time.Time) {
	sent = time.Now()
	ctx := until{l.store.ctx, sent.Add(l.store.patience())}
	cmds = pack(ctx, batch, !l.single.Load())
	send(ctx, l.store.client, cmds)
	return l.split(ctx, cmds), sent
}

// until is a context with a deadline for those who ask, such as a dialer. It
// needs no timer, which a context.WithDeadline for each batch would.
type until struct {
	context.Context
	deadline time.Time
}

func (u until) Deadline() (time.Time, bool) { return u.deadline, true }

// split sends entry by entry what a node refuses to take in one script because
// the keys are in several slots, and remembers that. None of it has been
// executed then.
func (l *lane) split(ctx context.Context, cmds []*command) []*command {
	var settled, again []*command
	for _, c := range cmds {
		if len(c.entries) > 1 && classify(c.Err()) == fault {
			again = append(again, pack(ctx, c.entries, false)...)
		} else {
			settled = append(settled, c)
		}
	}
	if again == nil {
		return cmds
	}
	l.single.Store(true)
	send(ctx, l.store.client, again)
	return append(settled, again...)
}

// judge tells the breaker how a batch went. A late one has been counted before:
// what comes of it in the end is neither a success nor a second failure, which
// would open a breaker that has just let the first calls through again.
func (l *lane) judge(cmds []*command, late bool) {
	for _, c := range cmds {
		err := c.Err()
		f := classify(err)
		switch {
		case f == fine || f == fault:
			continue
		case late:
			l.store.complain(f, err)
		default:
			l.breaker.failed(c.entries[0].keys[0], f, err)
		}
		return
	}
	if !late {
		l.breaker.succeeded()
	}
}

// deliver hands every entry of a command its part of the reply.
func (l *lane) deliver(c *command, sent time.Time) {
	reply, err := c.Result()
	want := 1
	for _, e := range c.entries {
		want += len(e.reply)
	}
	if err == nil && len(reply) != want {
		err = errReply
	}
	at := 1
	for _, e := range c.entries {
		if e.err = err; err == nil {
			e.take(reply[0], reply[at:at+len(e.reply)], sent)
			at += len(e.reply)
		}
		l.hand(e)
	}
}

// hand gives the entry to its caller, or takes the charge back when the caller
// has given up.
func (l *lane) hand(e *entry) {
	switch {
	case e.alone:
	case e.state.CompareAndSwap(waiting, answered):
		e.done <- struct{}{}
		return
	case e.err != nil:
	case e.late != nil:
		e.late(e)
	case e.owner != nil:
		e.owner.takeBack(e)
	}
	e.free()
}
