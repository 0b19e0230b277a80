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
	heartbeat = 2 * time.Second  // the longest pause between heartbeats; the shortest is half
	lifetime  = 10 * time.Second // of an instance without heartbeats
)

// registry counts the instances that share the limits, by heartbeats in Redis.
// It starts with the first decision. The last count holds while Redis is away.
// A lower count applies only after it has been lower for a lifetime: after an
// outage the instances return one by one.
type registry struct {
	store      *Store
	id         int64
	once       sync.Once
	counted    atomic.Pointer[instances]
	lowerSince time.Time // zero: the count is not lower than the one in force
}

func (r *registry) init(s *Store) {
	r.store = s
	r.id = rand.Int64N(1<<62) + 1<<62 // all ids have the same length, so that they sort as numbers
	if s.instances > 0 {
		r.counted.Store(&instances{s.instances, -1})
	}
}

func (r *registry) known() instances {
	if in := r.counted.Load(); in != nil {
		return *in
	}
	return instances{1, 0}
}

// needed reports whether any feature uses the count.
func (r *registry) needed() bool {
	return r.store.instances == 0 && (r.store.fallback == FallbackLocal || r.store.blocks > 0)
}

// start begins the heartbeats, once.
func (r *registry) start() {
	if r.needed() {
		r.once.Do(func() { r.store.background(r.run) })
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

// beat sends a heartbeat and notes the number of live instances.
func (r *registry) beat() bool {
	req := r.newRequest(opAcquire)
	if !r.store.do(context.Background(), req) {
		return false
	}
	defer req.free()
	if req.err != nil {
		return false
	}
	r.note(instances{int(req.reply[0]), int(req.reply[1])})
	return true
}

func (r *registry) note(now instances) {
	was := r.counted.Load()
	switch {
	case was == nil || now.count >= was.count:
		r.lowerSince = time.Time{}
	case r.lowerSince.IsZero():
		r.lowerSince = time.Now()
		now.count = was.count
	case time.Since(r.lowerSince) < lifetime:
		now.count = was.count
	}
	if was != nil && *was == now {
		return
	}
	r.counted.Store(&now)
	for _, l := range r.store.allLimiters() {
		l.fallback.resize()
	}
	r.store.emit(Event{Kind: InstancesChanged})
}

// leave passes this instance's share to the others at once.
func (r *registry) leave() {
	if r.needed() && r.counted.Load() != nil {
		r.store.send(r.newRequest(opReset))
	}
}

func (r *registry) newRequest(op int64) *request {
	return newRequest(heartbeatScript, registryKey(r.store.prefix), args{op, r.id, lifetime.Milliseconds()})
}
