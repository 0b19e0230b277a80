package remote

import (
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// breaker spares callers the wait for a node that does not reply. While it is
// open, decisions are local and immediate, and one probe at a time checks the
// node. After a success a growing part of the calls goes to the node, so that
// the instances do not all return at once.
//
// The probe is a script that writes: PING succeeds on a read-only replica
// and on a server that is out of memory.
//
// The pause between probes is random, between 1 and 1.5 probe intervals, so that
// many instances spread. It does not grow: one call per interval and instance is
// little, and the breaker must notice the node's return within two intervals.
type breaker struct {
	client *Client
	node   *Node
	level  atomic.Uint32 // percentage of the calls that go to Redis

	mu      sync.Mutex
	history uint32 // the last 32 batches, newest in bit 0: 1 for a failure
	key     string // of the last failure: the probe goes to the same node
	probing bool
	probes  atomic.Int32 // unanswered probes
	rejects atomic.Bool  // the node answered the last probe, and rejected it
}

const (
	tripStreak   = 0b111 // consecutive failures that open the breaker
	tripFailures = 16    // failures among the last 32 batches that open it
	maxProbes    = 4     // unanswered, each on its own connection
)

// ramp lists the percentages of the calls that go to Redis after a successful probe,
// each for a twentieth of the probe interval.
var ramp = []uint32{1, 10, 50}

func (b *breaker) allow() bool {
	level := b.level.Load()
	return level == FullLevel || (level > 0 && rand.Uint32N(FullLevel) < level)
}

func (b *breaker) succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.history <<= 1
}

// failed counts and reports a failed batch; key is one of its keys.
func (b *breaker) failed(key string, f Failure, err error) {
	b.client.host.Failed(f, err)
	if b.recordFailure(key) {
		b.client.router.reload(key)
		b.client.host.Changed(b.node.addr, 0, err)
	}
}

// recordFailure counts a failure and reports whether it has opened the breaker.
func (b *breaker) recordFailure(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	level := b.level.Load()
	if level == 0 {
		return false
	}
	b.history = b.history<<1 | 1
	if level == FullLevel && b.history&tripStreak != tripStreak && bits.OnesCount32(b.history) < tripFailures {
		return false
	}
	b.key = key
	b.level.Store(0)
	if !b.probing {
		b.probing = b.node.start(b.recover)
	}
	return true
}

// recover probes until the node is back and the ramp has passed.
func (b *breaker) recover() {
	for {
		interval := b.client.ProbeInterval
		if !b.client.Sleep(interval + rand.N(interval/2+1)) {
			return
		}
		if b.node.isClosed() || b.reach() && b.probe() && b.rampUp() {
			return
		}
		b.node.reportDistance()
		b.client.router.reload(b.failedKey())
	}
}

// reach reports whether the node accepts connections, and renews idle ones.
func (b *breaker) reach() bool {
	g, is := b.client.transport.(goRedis)
	if !is {
		return true
	}
	if err := g.dial(b.client.running, b.client.Timeout); err != nil {
		b.client.host.Failed(Classify(err), err)
		return false
	}
	g.renew(b.client.running, b.failedKey(), b.client.Timeout)
	return true
}

// rampUp returns the calls to Redis stage by stage. It reports false if the breaker opened again.
func (b *breaker) rampUp() bool {
	b.mu.Lock()
	b.history = 0
	b.level.Store(ramp[0])
	b.mu.Unlock()
	b.client.router.keys.CompareAndSwap(together, unknown)
	b.node.flush()
	b.client.host.Changed(b.node.addr, int(ramp[0]), nil)
	for _, level := range []uint32{ramp[1], ramp[2], FullLevel} {
		if !b.client.Sleep(b.client.ProbeInterval / 20) {
			return true // the store is closing
		}
		if !b.setLevel(level) {
			return false
		}
	}
	b.client.host.Changed(b.node.addr, FullLevel, nil)
	return true
}

// setLevel raises the level; false if the breaker has opened again.
func (b *breaker) setLevel(level uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.level.Load() == 0 {
		return false
	}
	b.level.Store(level)
	b.probing = level < FullLevel // a later failure starts a new recovery
	return true
}

func (b *breaker) failedKey() string { b.mu.Lock(); defer b.mu.Unlock(); return b.key }

// probe writes a key in the slot of the failed one, and waits as long as a caller does.
func (b *breaker) probe() bool {
	if b.probes.Load() >= maxProbes {
		return false
	}
	key := probeKey(b.failedKey())
	result := make(chan error, 1)
	b.probes.Add(1)
	if !b.node.start(func() {
		defer b.probes.Add(-1)
		result <- b.writeProbe(key)
	}) {
		return false
	}
	timer := time.NewTimer(b.client.Timeout)
	defer timer.Stop()
	select {
	case err := <-result:
		b.rejects.Store(Classify(err) == Rejected)
		b.client.host.Failed(Classify(err), err)
		return err == nil
	case <-timer.C:
		b.rejects.Store(false)
		return false
	}
}

// writeProbe sends the probes of the host and, to a node that rejected the last ones, the kept
// corrections: a server that is out of memory still executes releases.
func (b *breaker) writeProbe(key string) error {
	probes := b.client.host.Probe(key, b.node)
	cmds := newCommands(probes, false)
	if b.rejects.Load() {
		b.node.mu.Lock()
		cmds = append(cmds, newCommands(b.node.takeKept(), false)...)
		b.node.mu.Unlock()
	}
	began := time.Now()
	b.client.run(cmds)
	for _, c := range cmds[:len(probes)] {
		c.deliver()
	}
	b.node.settle(cmds[len(probes):])
	for _, c := range cmds[len(probes):] {
		c.complete(began)
	}
	err := probes[0].Err
	if err == nil {
		b.node.trips.note(time.Since(began))
		b.client.host.Probed(probes)
	}
	for _, r := range probes {
		r.Free()
	}
	return err
}
