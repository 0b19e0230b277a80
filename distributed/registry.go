package distributed

import (
	"context"
	_ "embed"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

//go:embed heartbeat.lua
var heartbeatSource string

var heartbeatScript = newScript("heartbeat", heartbeatSource, 3, 2)

const (
	heartbeat = 2 * time.Second  // between two signs of life, less up to a half
	lifetime  = 10 * time.Second // of an instance that gives none
)

// registry counts the instances that share the limits, by a heartbeat in Redis.
// It starts with the first decision. What was counted last holds while Redis
// is away. A count that falls is believed only when it has been lower for a
// lifetime: after an outage the instances come back one by one.
type registry struct {
	store *Store
	id    int64
	once  sync.Once
	last  atomic.Pointer[instances]
	lower time.Time // since when the count has been lower than believed
}

func (r *registry) init(s *Store) {
	r.store = s
	r.id = rand.Int64N(1<<62) + 1<<62 // all of one length, so that they sort alike
	if s.instances > 0 {
		r.last.Store(&instances{s.instances, -1})
	}
}

func (r *registry) known() instances {
	if in := r.last.Load(); in != nil {
		return *in
	}
	return instances{1, 0}
}

// counts reports whether anybody needs the number.
func (r *registry) counts() bool {
	return r.store.instances == 0 && (r.store.fallback == Local || r.store.blocks > 0)
}

// start begins the heartbeat, once.
func (r *registry) start() {
	if r.counts() {
		r.once.Do(func() { r.store.help(r.run) })
	}
}

func (r *registry) run() {
	for {
		pause := heartbeat/2 + rand.N(heartbeat/2)
		if !r.beat() {
			pause = r.store.probeInterval
		}
		if !r.store.sleep(pause) {
			return
		}
	}
}

// beat gives a sign of life and notes how many others do.
func (r *registry) beat() bool {
	e := r.ask(opAcquire)
	if !r.store.call(context.Background(), e) {
		return false
	}
	defer e.free()
	if e.err != nil {
		return false
	}
	r.note(instances{int(e.reply[0]), int(e.reply[1])})
	return true
}

func (r *registry) note(now instances) {
	was := r.last.Load()
	switch {
	case was == nil || now.count >= was.count:
		r.lower = time.Time{}
	case r.lower.IsZero():
		r.lower = time.Now()
		now.count = was.count
	case time.Since(r.lower) < lifetime:
		now.count = was.count
	}
	if was != nil && *was == now {
		return
	}
	r.last.Store(&now)
	for _, l := range r.store.everyLimiter() {
		l.fallback.resize()
	}
	r.store.emit(Event{Kind: InstancesChanged})
}

// leave lets the others have this instance's part at once.
func (r *registry) leave() {
	if r.counts() && r.last.Load() != nil {
		r.store.tell(r.ask(opReset))
	}
}

func (r *registry) ask(op int64) *entry {
	return ask(heartbeatScript, registryKey(r.store.prefix), args{op, r.id, lifetime.Milliseconds()})
}
