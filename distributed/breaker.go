package distributed

import (
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// breaker spares callers the wait for a node that does not reply. While it is
// open, decisions are local and immediate, and a single probe at a time checks
// whether the node is back. Then a growing part of the calls goes there, so that
// the instances do not all return in the same instant.
//
// The probe is a script that writes: PING succeeds on a read-only replica
// and on a server that is out of memory.
//
// The pause between probes is random, between 1 and 1.5 probe intervals, so that
// many instances spread. It does not grow: one call for each interval and
// instance is little, and the node's return must be noticed within two
// intervals.
type breaker struct {
	store *Store
	queue *nodeQueue
	level atomic.Uint32 // percentage of the calls that go to Redis

	mu      sync.Mutex
	history uint32 // the last 32 batches, newest in bit 0: 1 for a failure
	key     string // of the last failure: the probe goes to the same node
	probing bool
	probes  atomic.Int32 // unanswered probes
}

const (
	fullLevel    = 100
	tripStreak   = 0b111 // consecutive failures that open the breaker
	tripFailures = 16    // failures among the last 32 batches that open it
	maxProbes    = 4     // unanswered, each on its own connection
)

// ramp is the percentage of the calls that go to Redis after a successful probe,
// each stage for a twentieth of the probe interval.
var ramp = []uint32{1, 10, 50}

func (b *breaker) init(s *Store, q *nodeQueue) {
	b.store, b.queue = s, q
	b.level.Store(fullLevel)
}

// allow reports whether this call may go to Redis.
func (b *breaker) allow() bool {
	level := b.level.Load()
	return level == fullLevel || (level > 0 && rand.Uint32N(fullLevel) < level)
}

func (b *breaker) succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.history <<= 1
}

// failed counts a failed batch; key is one of its keys.
func (b *breaker) failed(key string, f failure, err error) {
	if !b.queue.reportDistance() {
		b.store.logFailure(f, err)
	}
	if b.recordFailure(key) {
		b.store.router.reload(key)
		b.store.emit(Event{Kind: BreakerChanged, Node: b.queue.addr, State: StateOpen, Err: err})
	}
}

// recordFailure reports whether the failure has opened the breaker.
func (b *breaker) recordFailure(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	level := b.level.Load()
	if level == 0 {
		return false
	}
	b.history = b.history<<1 | 1
	if level == fullLevel && b.history&tripStreak != tripStreak && bits.OnesCount32(b.history) < tripFailures {
		return false
	}
	b.key = key
	b.level.Store(0)
	if !b.probing {
		b.probing = b.queue.start(b.recover)
	}
	return true
}

// recover probes until the node is back and the ramp has passed.
func (b *breaker) recover() {
	for {
		interval := b.store.probeInterval
		if !b.store.sleep(interval + rand.N(interval/2+1)) {
			return
		}
		if g, is := b.store.transport.(goRedis); is {
			g.renew(b.store.running, b.failedKey(), b.store.timeout)
		}
		if b.queue.isClosed() || b.probe() && b.rampUp() {
			return
		}
		b.queue.reportDistance()
		b.store.router.reload(b.failedKey())
	}
}

// rampUp returns the calls to Redis stage by stage; false if one of them failed.
func (b *breaker) rampUp() bool {
	b.mu.Lock()
	b.history = 0
	b.level.Store(ramp[0])
	b.mu.Unlock()
	b.queue.flush()
	b.store.renewSlots()
	b.store.emit(Event{Kind: BreakerChanged, Node: b.queue.addr, State: StateRamping})
	for _, level := range []uint32{ramp[1], ramp[2], fullLevel} {
		if !b.store.sleep(b.store.probeInterval / 20) {
			return true // the store is closing
		}
		if !b.setLevel(level) {
			return false
		}
	}
	b.store.emit(Event{Kind: BreakerChanged, Node: b.queue.addr, State: StateClosed})
	return true
}

// setLevel raises the level, unless the breaker has opened again.
func (b *breaker) setLevel(level uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.level.Load() == 0 {
		return false
	}
	b.level.Store(level)
	b.probing = level < fullLevel // a later failure starts a new recovery
	return true
}

func (b *breaker) failedKey() string { b.mu.Lock(); defer b.mu.Unlock(); return b.key }

// probe runs a script that writes a key in the slot of the failed one. It waits
// as long as a caller does.
func (b *breaker) probe() bool {
	if b.probes.Load() >= maxProbes {
		return false
	}
	key := probeKey(b.failedKey())
	result := make(chan error, 1)
	b.probes.Add(1)
	if !b.queue.start(func() {
		defer b.probes.Add(-1)
		result <- b.writeProbe(key)
	}) {
		return false
	}
	timer := time.NewTimer(b.store.timeout)
	defer timer.Stop()
	select {
	case err := <-result:
		if classify(err) == rejected { // a server without memory takes releases
			b.queue.flush()
		}
		b.store.logFailure(classify(err), err)
		return err == nil
	case <-timer.C:
		return false
	}
}

// writeProbe charges a bucket that is full again after a millisecond. While the
// breaker is open the heartbeat of this instance goes out with it: a node that is far
// away still counts the instances.
func (b *breaker) writeProbe(key string) error {
	const millisecond = 1000
	requests := []*request{newRequest(bucketScript, key, args{opAcquire, millisecond, 0, millisecond})}
	if reg := &b.store.registry; reg.started.Load() && b.level.Load() == 0 {
		if beat := reg.newRequest(opAcquire); b.store.router.queue(beat.keys[0]) == b.queue {
			requests = append(requests, beat)
		}
	}
	began := time.Now()
	err := b.store.execute(requests)
	if err == nil {
		b.queue.trips.note(time.Since(began))
		if len(requests) > 1 && requests[1].err == nil {
			beat := requests[1].reply
			b.store.registry.note(int(beat[0]), int(beat[1]), int(beat[2]))
		}
	}
	for _, r := range requests {
		r.free()
	}
	return err
}

// execute sends requests past the queue and the breaker, as one call, and waits
// for the replies as long as for late ones. Only scripts that the server has lost
// are sent again. The error is the first request's.
func (s *Store) execute(requests []*request) error {
	ctx := deadline{s.ctx, time.Now().Add(s.replyTimeout())}
	cmds := newCommands(requests, false)
	s.transport.Do(ctx, cmds)
	var lost []*Command
	for i, c := range cmds {
		if classify(c.err) == noScript {
			cmds[i] = &Command{script: c.script, requests: c.requests, withSource: true}
			lost = append(lost, cmds[i])
		}
	}
	if len(lost) > 0 {
		s.transport.Do(ctx, lost)
	}
	for _, c := range cmds {
		c.deliver()
	}
	return requests[0].err
}
