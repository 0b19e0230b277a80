package remote

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// router finds the Node of a key: one for each node of a cluster or shard of a Ring.
//
// The client knows which node serves a slot and follows redirections. The
// router's own map only selects the queue, so an old map costs a redirection.
// A failure of a node reloads both.
type router struct {
	client *Client
	ring   func(key string) string   // returns the address of a key's shard; nil: no Ring
	keys   atomic.Uint32             // whether keys of several tags are decided in one step
	slots  atomic.Pointer[slotNodes] // nil: unknown yet
	whole  *Node                     // of a single server; of a cluster, for slots without a known node

	mu     sync.Mutex
	nodes  map[string]*Node // by address
	closed bool             // new nodes are born closed
	once   sync.Once
	stale  chan string // a key whose node has failed
}

// The states of router.keys. In all but together, keys of several tags are decided apart.
const (
	unknown uint32 = iota
	asked
	together
	apart
)

// slotNodes holds the Node of each slot; nil for a slot without one.
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

func (r *router) nodeOf(key string) *Node {
	if r.ring != nil {
		return r.shard(key)
	}
	r.once.Do(func() { r.client.Background(r.follow) })
	if slots := r.slots.Load(); slots != nil {
		if n := slots[slot(key)]; n != nil {
			return n
		}
	}
	return r.whole
}

func (r *router) shard(key string) *Node {
	addr := r.ring(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nodeAt(addr)
}

// nodeAt returns the node at addr. The caller holds r.mu.
func (r *router) nodeAt(addr string) *Node {
	n := r.nodes[addr]
	if n == nil {
		n = newNode(r.client, addr)
		n.closed = r.closed
		r.nodes[addr] = n
	}
	return n
}

func (r *router) nodesInUse() (all []*Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.nodes {
		all = append(all, n)
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
		if n := r.nodeOf(key); !seen[n] {
			seen[n], keys[key] = true, n
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
	for _, n := range r.nodesInUse() {
		group.Go(n.close)
	}
	group.Wait()
}

// noteApart records that keys with different tags cannot be decided together.
func (r *router) noteApart() {
	if r.keys.Swap(apart) != apart {
		r.reload("")
	}
}

// learn asks the host whether keys can be decided together, unless the answer is known.
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

// answered calls learn in the background after the first reply of a node, and after a failure
// again at most once per probe interval.
func (r *router) answered() {
	if r.keys.Load() == unknown && r.keys.CompareAndSwap(unknown, asked) {
		r.client.Background(func() {
			if r.learn() != nil && r.client.Sleep(r.client.ProbeInterval) {
				r.keys.CompareAndSwap(asked, unknown)
			}
		})
	}
}

// reload makes follow load the map of slots, because the node of key has failed.
func (r *router) reload(key string) {
	select {
	case r.stale <- key:
	default: // a reload is due already
	}
}

// follow keeps the map of slots current. Only a cluster has one.
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

// load loads the map of slots. failed is a key whose node has failed, or empty. It
// reports false if there is no map.
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

// replace installs a new map, and closes the nodes that are not in it.
func (r *router) replace(slots []SlotRange) {
	next, live := new(slotNodes), map[*Node]bool{}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range slots {
		if s.Addr == "" {
			continue
		}
		n := r.nodeAt(s.Addr)
		live[n] = true
		for i := max(s.First, 0); i <= min(s.Last, clusterSlots-1); i++ {
			next[i] = n
		}
	}
	r.slots.Store(next)
	for addr, n := range r.nodes {
		if !live[n] {
			delete(r.nodes, addr)
			r.client.Background(n.close)
		}
	}
}
