package distributed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// Store makes limiters whose state is in Redis, and owns the parts that they
// share: the queues to the nodes, the breakers, and the count of the instances.
//
// One store for each client is enough; the names of limits keep them apart.
type Store struct {
	settings
	client   redis.UniversalClient // nil after NewWithTransport
	owned    bool                  // by Open: Close closes the client
	remote   *remote.Client
	once     sync.Once
	fetches  sync.WaitGroup // of blocks; none begins after their limiter's blocks are closed
	registry registry
	denied   *denyCache

	mu       sync.Mutex
	limiters map[*Limiter]bool
	names    map[string]nameUse
	pinging  atomic.Int32         // pings that are under way
	logged   map[string]time.Time // by the kind of the report
}

// New makes a store on any client of go-redis: a single server, Sentinel,
// Cluster or Ring. It does not dial and does not fail while Redis is away; the
// error concerns the options only. The caller closes the client, after the
// store.
//
// Up to eight callers do not wait for a batch of others: on a client of a single server they send
// their commands on up to eight connections of the store, which are opened, named and renewed as the
// client's are. There are none where the client has hooks when the store is made, a Limiter, a
// StreamingCredentialsProvider or MaxActiveConns: then all commands go through the client, and one or two
// callers at a time wait about twice as long.
//
// On a Ring, keys move when a shard goes down or comes back; a moved key starts
// with a full bucket.
func New(client redis.UniversalClient, opts ...Option) (*Store, error) {
	if client == nil {
		return nil, errors.New("distributed: the client is nil")
	}
	s, err := newStore(remote.GoRedis(client), opts)
	if err == nil {
		s.client = client
	}
	return s, err
}

// NewWithTransport makes a store on another client of Redis: see [Transport]. The caller
// closes the client, after the store. The error concerns the options only.
func NewWithTransport(t Transport, opts ...Option) (*Store, error) {
	if t == nil {
		return nil, errors.New("distributed: the transport is nil")
	}
	return newStore(carrier{t}, opts)
}

func newStore(t remote.Transport, opts []Option) (*Store, error) {
	cfg, err := configure(opts)
	if err != nil {
		return nil, err
	}
	s := &Store{settings: cfg, limiters: map[*Limiter]bool{}, names: map[string]nameUse{}, logged: map[string]time.Time{}}
	s.remote = remote.New(t, remote.Config{Timeout: cfg.timeout, ProbeInterval: cfg.probeInterval, Prefix: cfg.prefix}, (*host)(s))
	s.denied = newDenyCache(cfg.denyCache)
	s.registry.init(s)
	return s, nil
}

// Close returns unspent blocks, leaves the registry of instances and waits until nothing is on the
// wire. Call it when the work is done: leases that end later refund nothing, so units in flight are
// held for the expiry of [Store.InFlight]. After ten timeouts, at least a second, it stops dialing and repeating,
// and only waits for connections that are being read: in total at most this time plus the read
// timeout of the client, 3 s by default in go-redis, three times where a connection is being opened
// on a cluster or a Ring. Acquire returns [ErrClosed] afterwards.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.remote.Stop()
		for _, l := range s.allLimiters() {
			l.blocks.close()
		}
		s.fetches.Wait()
		s.registry.leave()
		s.remote.Close()
		if s.owned {
			_ = s.client.Close()
		}
	})
	return nil
}

// Ping reaches every node and counts this instance, as the first decisions would.
// Call it at start: it opens connections, loads the scripts, runs every command that they use,
// finds a proxy that runs a script on the server of its first key, and reports why
// decisions would be local. The error is [ErrUnavailable], with the error of a
// node, with the time that replies take if that is longer than the timeout, or with
// the error of ctx.
func (s *Store) Ping(ctx context.Context) error {
	result := make(chan error, 1)
	if !s.remote.Background(func() { result <- s.ping() }) {
		return ErrClosed
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
}

func (s *Store) ping() error {
	s.pinging.Add(1)
	defer s.pinging.Add(-1)
	if err := s.remote.Ping(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if s.registry.needed() && !s.registry.beat() {
		return fmt.Errorf("%w: this instance was not counted", ErrUnavailable)
	}
	return nil
}

// execute sends a request that Redis must execute, for what of a name. After an error r is gone.
func (s *Store) execute(ctx context.Context, r *remote.Request, what, name string) error {
	if !s.remote.Do(ctx, r) {
		return fmt.Errorf("%w: %s %q: %w", ErrUnavailable, what, name, cmp.Or(ctx.Err(), errNoReply))
	}
	err := r.Err
	if err != nil {
		err = fmt.Errorf("%w: %s %q: %w", ErrUnavailable, what, name, err)
	}
	for i := 0; i < len(r.Keys) && err == nil; i++ {
		if r.Answer(i).Flag() == flagWrongType {
			err = fmt.Errorf("%s %q: %w", what, name, errWrongType)
		}
	}
	if err != nil {
		r.Free()
	}
	return err
}

// Client returns the client that was passed to New; nil after
// [NewWithTransport].
func (s *Store) Client() redis.UniversalClient { return s.client }

// Prefix returns the beginning of all keys of the store.
func (s *Store) Prefix() string { return s.prefix }

type nameUse struct {
	kind     string
	limiters int
}

// unregister removes a limiter that is closed.
func (s *Store) unregister(l *Limiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.limiters, l)
	use := s.names[l.name]
	if use.limiters--; use.limiters > 0 {
		s.names[l.name] = use
	} else {
		delete(s.names, l.name)
	}
}

// register adds a new limiter. All limits of one name have the same kind,
// because the values that two kinds keep under a key differ.
func (s *Store) register(l *Limiter) (*Limiter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.remote.Closed() {
		return nil, ErrClosed
	}
	use := s.names[l.name]
	if use.limiters > 0 && use.kind != l.kind {
		return nil, l.errorf("the name belongs to a %s; choose another name", use.kind)
	}
	s.names[l.name] = nameUse{l.kind, use.limiters + 1}
	s.limiters[l] = true
	l.fallback.resize() // the instances may have been counted meanwhile
	return l, nil
}

func (s *Store) allLimiters() []*Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.limiters))
}
