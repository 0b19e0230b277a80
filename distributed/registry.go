package distributed

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// registry counts the instances that share the limits, by heartbeats in Redis.
// It starts with the first decision. The last count holds while Redis is away.
//
// An instance has settled when all others have had time to count it. Until then
// it assumes the last known number of instances, or else the number that the user
// states, and takes no blocks. A lower count applies only after a lifetime, because
// after an outage the instances return one by one.
type registry struct {
	store   *Store
	id      int64
	once    sync.Once
	started atomic.Bool
	counted atomic.Pointer[instances]

	mu         sync.Mutex
	joined     time.Time // when the heartbeats without a long pause began
	latest     time.Time // of the latest heartbeat
	lowerSince time.Time // when the count fell below the one in force; zero: it is not lower
}

const (
	heartbeat = 2 * time.Second // the longest pause between heartbeats; the shortest is half
	fewEnough = 1000            // instances; more of them send fewer heartbeats
	lifetimes = 5               // missed heartbeats after which an instance no longer counts
)

func (r *registry) init(s *Store) {
	r.store = s
	r.id = rand.Int64N(1<<62) + 1<<62 // all ids have the same length, so they sort as numbers
	if s.instances > 0 {
		r.counted.Store(&instances{count: s.instances, rank: -1})
	}
}

func (r *registry) known() instances {
	if in := r.counted.Load(); in != nil {
		return *in
	}
	return instances{count: r.store.assumed, rank: -1, assumed: true}
}

// needed reports whether any feature uses the count.
func (r *registry) needed() bool {
	return r.store.instances == 0 && (r.store.fallback == FallbackLocal || r.store.blocks > 0)
}

// start starts the heartbeats once.
func (r *registry) start() {
	if r.needed() {
		r.once.Do(func() { r.started.Store(true); r.store.remote.Background(r.run) })
	}
}

func (r *registry) run() {
	for {
		pause := r.interval()/2 + rand.N(r.interval()/2)
		if !r.beat() {
			pause = r.store.probeInterval
		}
		if !r.store.remote.Sleep(pause) {
			return
		}
	}
}

// interval returns the longest pause between heartbeats.
func (r *registry) interval() time.Duration {
	return heartbeat * time.Duration(1+r.known().count/fewEnough)
}

// lifetime returns how long an instance without heartbeats counts.
func (r *registry) lifetime() time.Duration { return lifetimes * r.interval() }

// settled reports whether all others have had time to count this instance, and
// their earlier blocks have ended. The caller holds r.mu.
func (r *registry) settled() bool {
	return !r.joined.IsZero() && time.Since(r.joined) > r.interval()+2*blockLifetime
}

// exact reports whether the count includes all instances that have settled.
func (r *registry) exact() bool {
	if r.store.instances > 0 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settled() && time.Since(r.latest) < 2*r.interval()
}

// beat sends a heartbeat. It waits longer than a decision, so that a distant node
// still counts. While the breaker is open heartbeats go out with its probes.
func (r *registry) beat() bool {
	req := r.newRequest(opAcquire)
	defer req.Free()
	if r.store.remote.Node(req.Keys[0]).Away() || r.store.remote.Execute([]*remote.Request{req}) != nil {
		return false
	}
	r.answered(req)
	return true
}

func (r *registry) answered(req *remote.Request) {
	r.note(int(req.Reply[0]), int(req.Reply[1]), int(req.Reply[2]))
}

// note applies a reply: the number of instances, the rank of this one, and last, the largest recent number.
func (r *registry) note(count, rank, last int) {
	if r.update(count, rank, last) {
		for _, l := range r.store.allLimiters() {
			l.fallback.resize()
		}
		r.store.emit(Event{Kind: InstancesChanged, Instances: r.known().count})
	}
}

// update reports whether the number in force has changed.
func (r *registry) update(count, rank, last int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, was := instances{count: count, rank: rank}, r.counted.Load()
	if time.Since(r.latest) > r.lifetime() {
		r.joined = time.Now()
	}
	r.latest = time.Now()
	if !r.settled() {
		if last == 0 {
			last = r.store.assumed
		}
		now = instances{count: max(count, last), rank: rank, assumed: true}
	}
	switch {
	case was == nil || was.assumed || now.count >= was.count:
		r.lowerSince = time.Time{}
	case r.lowerSince.IsZero():
		r.lowerSince = time.Now()
		now.count = was.count
	case time.Since(r.lowerSince) < r.lifetime():
		now.count = was.count
	}
	if was != nil && *was == now {
		return false
	}
	r.counted.Store(&now)
	return true
}

// leave removes this instance, so that its share passes to the others at once.
func (r *registry) leave() {
	if r.needed() && r.counted.Load() != nil {
		r.store.remote.Send(r.newRequest(opReset))
	}
}

func (r *registry) newRequest(op int64) *remote.Request {
	r.mu.Lock()
	settled := int64(0)
	if r.settled() {
		settled = 1
	}
	r.mu.Unlock()
	key := registryKey(r.store.prefix, r.store.service)
	req := remote.NewRequest(heartbeatScript, key, remote.Args{op, r.id, r.lifetime().Milliseconds(), settled})
	req.Keys = []string{key, key + ":names", key + ":largest"}
	return req
}

// registryKey returns the key of the registry of a prefix, or of a service.
func registryKey(prefix, service string) string {
	if service != "" {
		service = ":" + service
	}
	return prefix + ":{::instances" + service + "}"
}
