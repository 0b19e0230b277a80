package remote

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// router finds the queue to the node of a key: each node of a cluster and each
// shard of a Ring has a queue and a breaker of its own.
//
// The client knows which node serves a slot and follows redirections. The
// router's own map only decides which queue a request waits in, so an old map
// costs a redirection. Both are loaded again when a node fails.
type router struct {
	client *Client
	ring   func(key string) string   // the address of a key's shard of a Ring; nil: no Ring
	keys   atomic.Uint32             // whether keys of several tags are decided in one step
	slots  atomic.Pointer[slotNodes] // nil: not known yet
	whole  *Node                     // of a single server; of a cluster, for slots without a known node

	mu     sync.Mutex
	nodes  map[string]*Node // by address
	closed bool             // no further queue is opened
	once   sync.Once
	stale  chan string // a key whose node has failed
}

// The states of router.keys. Until they are known to lie together, keys are decided apart.
const (
	unknown uint32 = iota
	asked
	together
	apart
)

// slotNodes is the queue of each slot's node; nil for a slot without one.
type slotNodes [clusterSlots]*Node

func newRouter(s *Client) *router {
	r := &router{client: s, nodes: map[string]*Node{}, stale: make(chan string, 1)}
	r.whole = newNode(s, "")
	g, isGoRedis := s.transport.(goRedis)
	_, single := g.client.(*redis.Client)
	if isGoRedis {
		r.whole.own, r.ring = g.ownConns(), g.ring()
	}
	switch {
	case s.transport.Cluster() || r.ring != nil:
		r.keys.Store(apart)
	case !isGoRedis || single:
		r.once.Do(func() {}) // there is no map of slots
	}
	return r
}

func (r *router) queue(key string) *Node {
	if r.ring != nil {
		return r.shard(key)
	}
	r.once.Do(func() { r.client.Background(r.follow) })
	if slots := r.slots.Load(); slots != nil {
		if q := slots[slot(key)]; q != nil {
			return q
		}
	}
	return r.whole
}

func (r *router) shard(key string) *Node {
	addr := r.ring(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.node(addr)
}

// node returns the queue to an address. The caller holds r.mu.
func (r *router) node(addr string) *Node {
	q := r.nodes[addr]
	if q == nil {
		q = newNode(r.client, addr)
		q.closed = r.closed
		r.nodes[addr] = q
	}
	return q
}

func (r *router) queues() (all []*Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.nodes {
		all = append(all, q)
	}
	if len(all) == 0 && r.ring == nil {
		all = append(all, r.whole)
	}
	return all
}

// sampleKeys returns a key of each node.
func (r *router) sampleKeys() map[string]*Node {
	const tries = 1000 // nodes with fewer slots than a thousandth may be missed
	keys, seen := map[string]*Node{}, map[*Node]bool{}
	for i := range tries {
		key := r.client.Prefix + ":{::" + strconv.Itoa(i) + "}::probe"
		if q := r.queue(key); !seen[q] {
			seen[q], keys[key] = true, q
		}
	}
	return keys
}

func (r *router) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	var group sync.WaitGroup
	group.Go(r.whole.close)
	for _, q := range r.queues() {
		group.Go(q.close)
	}
	group.Wait()
}

// noteApart notes that the client, or a proxy, parts keys: a wrapper hides the type of
// the client.
func (r *router) noteApart() {
	if r.keys.Swap(apart) != apart {
		r.reload("")
	}
}

// learn asks the host, unless the answer is known, whether keys lie together.
func (r *router) learn() error {
	if r.keys.Load() >= together {
		return nil
	}
	parted, err := r.client.host.Parted()
	switch {
	case parted || SeveralSlots(err):
		r.noteApart()
		return nil
	case err == nil && !r.keys.CompareAndSwap(asked, together):
		r.keys.CompareAndSwap(unknown, together)
	}
	return err
}

// answered learns in the background, once a node has answered; after a failure not before a probe
// interval has passed.
func (r *router) answered() {
	if r.keys.Load() == unknown && r.keys.CompareAndSwap(unknown, asked) {
		r.client.Background(func() {
			if r.learn() != nil && r.client.Sleep(r.client.ProbeInterval) {
				r.keys.CompareAndSwap(asked, unknown)
			}
		})
	}
}

// reload asks for the map of slots; the node of key has failed.
func (r *router) reload(key string) {
	select {
	case r.stale <- key:
	default: // one is due
	}
}

// follow keeps the map of slots. A client that is no cluster has none.
func (r *router) follow() {
	const refresh = time.Minute // redirections show nothing
	for key := ""; ; {
		var again <-chan time.Time
		if r.load(key) || r.keys.Load() == apart {
			r.keys.Store(apart)
			again = time.After(refresh)
		}
		select {
		case key = <-r.stale:
		case <-again:
			key = ""
		case <-r.client.running.Done():
			return
		}
	}
}

// load reads the map of slots; the node of the key failed has failed, unless it is
// empty. It reports false if there is no map.
func (r *router) load(failed string) bool {
	ctx, cancel := context.WithTimeout(r.client.running, r.client.ReplyTimeout())
	defer cancel()
	slots, err := r.client.transport.Slots(ctx, failed)
	if err != nil || len(slots) == 0 {
		return false
	}
	r.replace(slots)
	return true
}

// replace puts a new map in use, and closes the queues to nodes that have gone.
func (r *router) replace(slots []SlotRange) {
	next, live := new(slotNodes), map[*Node]bool{}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range slots {
		if s.Addr == "" {
			continue
		}
		q := r.node(s.Addr)
		live[q] = true
		for i := max(s.First, 0); i <= min(s.Last, clusterSlots-1); i++ {
			next[i] = q
		}
	}
	r.slots.Store(next)
	for addr, q := range r.nodes {
		if !live[q] {
			delete(r.nodes, addr)
			r.client.Background(q.close)
		}
	}
}
