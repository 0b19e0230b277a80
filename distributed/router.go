package distributed

import (
	"sync"

	"github.com/redis/go-redis/v9"
)

// router finds the queue to the node of a key.
type router interface {
	queue(redisKey string) *nodeQueue
	// sameStep reports whether two keys can be decided in one step.
	sameStep(a, b string) bool
	// queues returns the queues that exist now.
	queues() []*nodeQueue
}

func newRouter(s *Store, client redis.UniversalClient) router {
	switch c := client.(type) {
	case *redis.ClusterClient:
		return newClusterRouter(s)
	case *redis.Ring:
		return &ringRouter{store: s, ring: c, shards: map[string]*nodeQueue{}}
	default:
		return &singleRouter{newNodeQueue(s)}
	}
}

// singleRouter is for a single server, and for Sentinel, which shows one.
type singleRouter struct{ only *nodeQueue }

func (r *singleRouter) queue(string) *nodeQueue      { return r.only }
func (r *singleRouter) sameStep(string, string) bool { return true }
func (r *singleRouter) queues() []*nodeQueue         { return []*nodeQueue{r.only} }

// clusterRouter has a queue for each sixteenth of a cluster's slots. The node
// that serves a slot is known only after talking to the cluster, and changes;
// the client keeps track of it and follows redirections. Nodes hold ranges of
// slots, so a node that stalls delays only the queues of its own ranges. A
// script in a cluster may touch one slot only: commands go in pipelines.
type clusterRouter struct{ ranges [16]*nodeQueue }

func newClusterRouter(s *Store) *clusterRouter {
	r := new(clusterRouter)
	for i := range r.ranges {
		r.ranges[i] = newNodeQueue(s)
		r.ranges[i].singleSlot.Store(true)
	}
	return r
}

func (r *clusterRouter) queue(key string) *nodeQueue {
	return r.ranges[slot(key)*len(r.ranges)/clusterSlots]
}
func (r *clusterRouter) sameStep(a, b string) bool { return slot(a) == slot(b) }
func (r *clusterRouter) queues() []*nodeQueue      { return r.ranges[:] }

// ringRouter has a queue for each shard. Keys of one tag share a shard.
type ringRouter struct {
	store  *Store
	ring   *redis.Ring
	mu     sync.Mutex
	shards map[string]*nodeQueue // by the shard's address
}

func (r *ringRouter) queue(key string) *nodeQueue {
	addr := "" // no shard is up: the queue's breaker will open
	if c, err := r.ring.GetShardClientForKey(key); err == nil {
		addr = c.Options().Addr
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.shards[addr]
	if q == nil {
		q = newNodeQueue(r.store)
		q.singleSlot.Store(true)
		r.shards[addr] = q
	}
	return q
}

func (r *ringRouter) sameStep(a, b string) bool { return tagOf(a) == tagOf(b) }

func (r *ringRouter) queues() []*nodeQueue {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*nodeQueue, 0, len(r.shards))
	for _, q := range r.shards {
		all = append(all, q)
	}
	return all
}
