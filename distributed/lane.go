package distributed

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// lane is the queue to one Redis node. Whatever has arrived while the last
// batch was on the wire goes out as the next one, so batches grow with the
// load, no timer is needed and a lone caller pays one round trip.
//
// A batch that is late no longer holds up the queue: callers have decided
// without it by then. Its answer is still read, and what it charged for
// callers who had given up is given back.
type lane struct {
	store   *Store
	breaker breaker
	// single is set where the node, or a proxy in front of it, does not take
	// scripts with keys of several slots.
	single atomic.Bool

	mu      sync.Mutex
	work    sync.Cond
	queue   []*entry
	idle    int // workers that wait for work
	workers int
	flying  int // batches on the wire that are not late
	flights [mostFlying]flight
	watch   *time.Timer // fires when the oldest batch may be late
	armed   bool
	closed  bool
	stopped sync.WaitGroup
}

const (
	mostFlying  = 2       // batches on the wire at once
	mostWorkers = 32      // the same, late ones included
	mostBatch   = 128     // entries in a batch: about 0.3 ms of the server's time
	mostQueue   = 1 << 14 // entries that wait; beyond, callers decide without Redis
)

func newLane(s *Store) *lane {
	l := &lane{store: s}
	l.work.L = &l.mu
	l.breaker.init(s, l)
	return l
}

// submit queues e; false when the lane is closed or full.
func (l *lane) submit(e *entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.queue) >= mostQueue {
		return false
	}
	l.queue = append(l.queue, e)
	if l.flying < mostFlying {
		l.rouse()
	}
	return true
}

// rouse finds a worker for the queue. The caller holds l.mu.
func (l *lane) rouse() {
	switch {
	case l.idle > 0:
		l.work.Signal()
	case l.workers < mostWorkers:
		l.workers++
		l.stopped.Add(1)
		go l.run()
	}
}

// run is a worker: it takes batches until the lane is closed.
func (l *lane) run() {
	defer l.stopped.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for len(l.queue) == 0 || l.flying >= mostFlying {
			if l.closed {
				l.workers--
				return
			}
			l.idle++
			l.work.Wait()
			l.idle--
		}
		batch := l.take()
		if len(batch) == 0 {
			continue
		}
		seat := l.board(batch)
		l.mu.Unlock()
		cmds, sent := l.fly(batch)
		l.mu.Lock()
		late := l.land(seat, batch)
		l.mu.Unlock()
		l.judge(cmds, late)
		for _, c := range cmds {
			l.deliver(c, sent)
		}
		l.mu.Lock()
	}
}

// take cuts the next batch off the queue, without the entries whose callers
// have given up.
func (l *lane) take() []*entry {
	n := min(len(l.queue), mostBatch)
	batch := make([]*entry, 0, n)
	for _, e := range l.queue[:n] {
		if e.state.Load() == waiting {
			batch = append(batch, e)
		} else {
			e.free()
		}
	}
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	return batch
}

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

// judge tells the breaker how a batch went. That it was late has been counted
// before; a reply that comes all the same is not a success.
func (l *lane) judge(cmds []*command, late bool) {
	for _, c := range cmds {
		err := c.Err()
		if f := classify(err); f != fine && f != fault {
			l.breaker.failed(c.entries[0].keys[0], f, err)
			return
		}
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

// wait returns when e is answered, timeout has passed or ctx ends; false if e
// has been given up and no longer belongs to the caller.
func (l *lane) wait(ctx context.Context, e *entry) bool {
	e.timer.Reset(l.store.timeout)
	defer e.timer.Stop()
	select {
	case <-e.done:
		return true
	case <-e.timer.C:
	case <-ctx.Done():
	}
	if e.state.CompareAndSwap(waiting, abandoned) {
		return false
	}
	<-e.done
	return true
}

// start runs f on a goroutine that close waits for; false if it is too late.
func (l *lane) start(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.stopped.Add(1)
	go func() { defer l.stopped.Done(); f() }()
	return true
}

// close sends what is queued, unless the node is known to be away, and waits
// until nothing is on the wire.
func (l *lane) close() {
	l.mu.Lock()
	l.closed = true
	var drop []*entry
	if l.breaker.level.Load() == 0 {
		drop, l.queue = l.queue, nil
	}
	if len(l.queue) > 0 {
		l.rouse()
	}
	l.work.Broadcast()
	l.mu.Unlock()
	for _, e := range drop {
		e.err = ErrClosed
		l.hand(e)
	}
	l.stopped.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watch != nil {
		l.watch.Stop()
	}
}
