package distributed

import (
	"sync"

	"github.com/redis/go-redis/v9"
)

// router finds the lane of a key.
type router interface {
	lane(redisKey string) *lane
	// together reports whether two keys can be decided in one step.
	together(a, b string) bool
	close()
}

func newRouter(s *Store, client redis.UniversalClient) router {
	switch c := client.(type) {
	case *redis.ClusterClient:
		return newSlotRouter(s)
	case *redis.Ring:
		return &ringRouter{store: s, ring: c, lanes: map[string]*lane{}}
	default:
		return &oneRouter{newLane(s)}
	}
}

// oneRouter is for a single server, and for Sentinel, which shows one.
type oneRouter struct{ only *lane }

func (r *oneRouter) lane(string) *lane            { return r.only }
func (r *oneRouter) together(string, string) bool { return true }
func (r *oneRouter) close()                       { r.only.close() }

// slotRouter has a lane for each sixteenth of a cluster's slots. Which node
// serves a slot is known only after talking to the cluster, and changes; the
// client keeps track of it and follows redirections. Nodes hold ranges of
// slots, so a node that stalls holds up only the lanes of its own ranges.
// A script in a cluster may touch one slot only: commands go in pipelines.
type slotRouter struct{ lanes [16]*lane }

func newSlotRouter(s *Store) *slotRouter {
	r := new(slotRouter)
	for i := range r.lanes {
		r.lanes[i] = newLane(s)
		r.lanes[i].single.Store(true)
	}
	return r
}

func (r *slotRouter) lane(key string) *lane     { return r.lanes[slot(key)*len(r.lanes)/slots] }
func (r *slotRouter) together(a, b string) bool { return slot(a) == slot(b) }
func (r *slotRouter) close()                    { closeAll(r.lanes[:]) }

// ringRouter has a lane for each shard. Keys of one tag stay together.
type ringRouter struct {
	store *Store
	ring  *redis.Ring
	mu    sync.Mutex
	lanes map[string]*lane // by the shard's address
}

func (r *ringRouter) lane(key string) *lane {
	addr := "" // no shard is up: the lane's breaker will find out
	if c, err := r.ring.GetShardClientForKey(key); err == nil {
		addr = c.Options().Addr
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lanes[addr]
	if l == nil {
		l = newLane(r.store)
		l.single.Store(true)
		r.lanes[addr] = l
	}
	return l
}

func (r *ringRouter) together(a, b string) bool { return tagOf(a) == tagOf(b) }

func (r *ringRouter) close() {
	r.mu.Lock()
	var all []*lane
	for _, l := range r.lanes {
		all = append(all, l)
	}
	r.mu.Unlock()
	closeAll(all)
}

func closeAll(lanes []*lane) {
	var wg sync.WaitGroup
	for _, l := range lanes {
		wg.Go(l.close)
	}
	wg.Wait()
}
