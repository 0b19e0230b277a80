package distributed

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/cause"
)

// slots counts this instance's units in flight. It renews the admissions of Redis,
// and is the local limiter while Redis is away.
type slots struct {
	limiter *Limiter
	expiry  time.Duration
	mark    int64 // of the limit's parameters, which never change

	mu       sync.Mutex
	share    int64                 // of this instance, while Redis is away
	counts   map[string]int64      // units in flight, by key
	remote   map[int64]algo.Handle // admissions of Redis, by id
	renewing bool

	order sync.Mutex // so that corrections and renewals leave in the order in which the units change
}

// maxUnits bounds the units of a set in Redis.
const maxUnits = 10_000

// keep records an admission of Redis with n units more than before, to be renewed.
func (s *slots) keep(h algo.Handle, n int64) {
	s.mu.Lock()
	s.remote[h.State[0]] = h
	s.count(h.Key, n)
	begins := !s.renewing
	s.renewing = true
	s.mu.Unlock()
	if begins {
		s.limiter.store.remote.Background(s.renew)
	}
}

func (s *slots) remove(h algo.Handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.remote, h.State[0])
	s.count(h.Key, -min(h.N, maxUnits))
}

func (s *slots) settle(h algo.Handle, actual int64) {
	more := min(actual, maxUnits) - min(h.N, maxUnits)
	h.N = actual
	s.keep(h, more)
}

// count adds n to the units in flight of key. The caller holds s.mu.
func (s *slots) count(key string, n int64) {
	if now := s.counts[key] + n; now > 0 {
		s.counts[key] = now
	} else {
		delete(s.counts, key)
	}
}

func (s *slots) renew() {
	for s.limiter.store.remote.Sleep(s.expiry/4 + rand.N(s.expiry/12)) {
		s.mu.Lock()
		s.renewing = len(s.remote) > 0 || !s.limiter.closed.Load()
		ends := !s.renewing
		s.mu.Unlock()
		if ends {
			return
		}
		s.renewAll()
	}
}

// renewAll renews every admission now, except on nodes that are away, which get the renewals when they
// return. Redis restores the units that it has lost.
func (s *slots) renewAll() {
	s.mu.Lock()
	held := slices.Collect(maps.Keys(s.remote))
	s.mu.Unlock()
	for _, id := range held {
		s.renewOne(id)
	}
}

func (s *slots) renewOne(id int64) {
	s.order.Lock() // otherwise it could leave after its release
	defer s.order.Unlock()
	s.mu.Lock()
	h, held := s.remote[id]
	s.mu.Unlock()
	store, key := s.limiter.store, s.limiter.redisKey(h.Key)
	if !held || store.remote.Node(key).Away() {
		return
	}
	r := remote.NewRequest(inFlightScript, key, remote.Args{opRenew, s.expiry.Microseconds(), 0, 0, id, min(h.N, maxUnits), s.mark})
	r.Renews = true
	store.remote.Send(r)
}

// Acquire decides within this instance's share, without Redis. It always admits a request that
// is alone.
func (s *slots) Acquire(_ context.Context, key string, n int64) (algo.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.look(key, n)
	if !d.Allowed {
		return algo.Lease{Decision: d}, nil
	}
	s.count(key, n)
	d.Remaining = max(d.Remaining-n, 0)
	return algo.NewLease(d, (*localSlot)(s), algo.Handle{Key: key, N: n}), nil
}

// Peek returns the answer of Acquire and takes no slot.
func (s *slots) Peek(_ context.Context, key string, n int64) (algo.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look(key, n), nil
}

// look returns the answer for n units. The caller holds s.mu.
func (s *slots) look(key string, n int64) algo.Decision {
	inFlight := s.counts[key]
	d := algo.Decision{Limit: s.share, Allowed: true, Remaining: max(s.share-inFlight, 0)}
	if n > 0 && inFlight > 0 && inFlight+n > s.share {
		d.Allowed, d.Reason, d.Cause, d.RetryAfter = false, algo.Quota, cause.Limit, time.Second
		s.limiter.blame(&d, key)
	}
	return d
}

func (s *slots) resize(share int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.share = share
}

// localSlot settles and releases the leases that Redis has not admitted.
type localSlot slots

func (l *localSlot) Release(h algo.Handle, _ algo.Outcome) { l.Settle(h, 0) }

// About describes the limit, so that a composition does not settle slots.
func (l *localSlot) About() algo.Description { return l.limiter.About() }

func (l *localSlot) Settle(h algo.Handle, actual int64) {
	s := (*slots)(l)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(h.Key, min(actual, maxUnits)-min(h.N, maxUnits))
}
