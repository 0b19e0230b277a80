package distributed

import (
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// breaker keeps callers from waiting for a node that does not answer. While it
// is open, decisions are local and cost no time; a single probe at a time looks
// whether the node is back. Then a growing part of the calls goes there, so
// that the instances do not all arrive in the same instant.
//
// The probe is a script that writes: PING passes on a read-only replica and on
// a server that is out of memory.
//
// The time between probes is random, between the probe interval and one and a
// half of it, so that many instances spread. It does not grow: one call per
// interval and instance is little, and the node must be noticed within two
// intervals of its return.
type breaker struct {
	store *Store
	lane  *lane
	level atomic.Uint32 // per cent of the calls that go to Redis

	mu      sync.Mutex
	history uint32 // the last 32 batches, newest in bit 0: 1 for a failure
	key     string // of the last failure: the probe goes to the same node
	probing bool
	probes  atomic.Int32 // that wait for an answer
}

const (
	whole      = 100
	tripRow    = 0b111 // failures in a row that open the breaker
	tripShare  = 16    // failures among the last 32 batches that do
	mostProbes = 4     // unanswered ones, each on its own connection
)

// ramp is the per cent of the calls that go to Redis after a probe, each stage
// for a twentieth of the probe interval.
var ramp = []uint32{1, 10, 50}

func (b *breaker) init(s *Store, l *lane) {
	b.store, b.lane = s, l
	b.level.Store(whole)
}

// allow reports whether this call may go to Redis.
func (b *breaker) allow() bool {
	level := b.level.Load()
	return level == whole || (level > 0 && rand.Uint32N(whole) < level)
}

func (b *breaker) succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.history <<= 1
}

// failed counts a batch that went wrong with the key in it.
func (b *breaker) failed(key string, f failure, err error) {
	b.store.complain(f, err)
	if b.trip(key) {
		b.store.emit(Event{Kind: BreakerChanged, State: Open, Err: err})
	}
}

// trip notes a failure and reports whether it has opened the breaker.
func (b *breaker) trip(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	level := b.level.Load()
	if level == 0 {
		return false
	}
	b.history = b.history<<1 | 1
	if level == whole && b.history&tripRow != tripRow && bits.OnesCount32(b.history) < tripShare {
		return false
	}
	b.key = key
	b.level.Store(0)
	if !b.probing {
		b.probing = b.lane.start(b.recover)
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
		if b.probe() && b.climb() {
			return
		}
	}
}

// climb leads the calls back, stage by stage; false if one of them failed.
func (b *breaker) climb() bool {
	b.mu.Lock()
	b.history = 0
	b.level.Store(ramp[0])
	b.mu.Unlock()
	b.store.emit(Event{Kind: BreakerChanged, State: Ramping})
	for _, level := range []uint32{ramp[1], ramp[2], whole} {
		if !b.store.sleep(b.store.probeInterval / 20) {
			return true // the store is being closed
		}
		if !b.raise(level) {
			return false
		}
	}
	b.store.emit(Event{Kind: BreakerChanged, State: Closed})
	b.store.recovered()
	return true
}

// raise sets the level, unless the breaker has opened again meanwhile.
func (b *breaker) raise(level uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.level.Load() == 0 {
		return false
	}
	b.level.Store(level)
	b.probing = level < whole // from then on, a failure starts anew
	return true
}

// probe runs a script that writes a key beside the one that failed. It does
// not wait longer than a caller would.
func (b *breaker) probe() bool {
	if b.probes.Load() >= mostProbes {
		return false
	}
	b.mu.Lock()
	key := probeKey(b.key)
	b.mu.Unlock()
	result := make(chan error, 1)
	b.probes.Add(1)
	if !b.lane.start(func() {
		defer b.probes.Add(-1)
		result <- b.ping(key)
	}) {
		return false
	}
	timer := time.NewTimer(b.store.timeout)
	defer timer.Stop()
	select {
	case err := <-result:
		b.store.complain(classify(err), err)
		return err == nil
	case <-timer.C:
		return false
	}
}

// ping fills a bucket that is empty again after a millisecond. It is one call:
// only a script that the server has lost is sent again.
func (b *breaker) ping(key string) error {
	const millisecond = 1000
	e := ask(bucketScript, key, args{opAcquire, millisecond, 0, millisecond})
	defer e.free()
	ctx := until{b.store.ctx, time.Now().Add(b.store.patience())}
	cmds := pack(ctx, []*entry{e}, false)
	process(ctx, b.store.client, cmds)
	if classify(cmds[0].Err()) == noScript {
		cmds[0] = newCommand(ctx, e.script, cmds[0].entries, true)
		process(ctx, b.store.client, cmds)
	}
	return cmds[0].Err()
}
