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
	mostFlying  = 1       // batches on the wire at once: more would change the order
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
