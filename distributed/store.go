package distributed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Store makes limiters whose state is in Redis, and owns what they share: the
// queues to the nodes, the breakers, and the count of the instances.
//
// One store for each client is enough; limits are told apart by their names.
type Store struct {
	client redis.UniversalClient
	settings
	router router
	ctx    context.Context // of the commands; ends with the store
	cancel context.CancelFunc

	life     context.Context // of what runs beside; ends when Close begins
	end      context.CancelFunc
	closed   atomic.Bool
	once     sync.Once
	helpers  sync.WaitGroup
	registry registry
	denied   *denyCache

	mu       sync.Mutex
	limiters []*Limiter
	kinds    map[string]string // name of a limit to its kind
	logged   [noScript + 1]time.Time
}

// New makes a store on any client of go-redis: a single server, Sentinel,
// Cluster or Ring. It does not dial and does not fail because Redis is away;
// the error is about the options only. The client stays the caller's to close,
// after the store.
//
// On a Ring, keys move when a shard goes down or comes back; those that move
// start with a full bucket.
func New(client redis.UniversalClient, opts ...Option) (*Store, error) {
	if client == nil {
		return nil, errors.New("distributed: the client is nil")
	}
	cfg, err := configure(opts)
	if err != nil {
		return nil, err
	}
	s := &Store{client: client, settings: cfg, kinds: map[string]string{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.life, s.end = context.WithCancel(s.ctx)
	s.router = newRouter(s, client)
	s.denied = newDenyCache(cfg.denyCache)
	s.registry.init(s)
	return s, nil
}

// Close returns unspent blocks, leaves the registry of instances and waits
// until nothing is on the wire, which takes as long as the client's read
// timeout if Redis does not answer. Acquire returns [ErrClosed] afterwards.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.mu.Lock() // no help begins after this
		s.closed.Store(true)
		s.mu.Unlock()
		s.end()
		s.helpers.Wait()
		for _, l := range s.everyLimiter() {
			l.close()
		}
		s.registry.leave()
		s.router.close()
		s.cancel()
	})
	return nil
}

// patience is how long an answer that nobody waits for any more is awaited, so
// that what it charged can be given back.
func (s *Store) patience() time.Duration { return max(time.Second, 10*s.timeout) }

// sleep waits; false if the store is closed meanwhile.
func (s *Store) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.life.Done():
		return false
	}
}

// help runs f in the background until Close.
func (s *Store) help(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed.Load() {
		s.helpers.Add(1)
		go func() { defer s.helpers.Done(); f() }()
	}
}

func (s *Store) emit(e Event) {
	switch e.Kind {
	case BreakerChanged:
		level := slog.LevelInfo
		if e.State == Open {
			level = slog.LevelWarn
		}
		s.logger.Log(s.ctx, level, "distributed: breaker", "state", e.State.String(), "err", e.Err)
	case InstancesChanged:
		n := s.registry.known()
		s.logger.Debug("distributed: instances", "count", n.count, "rank", n.rank)
	}
	if s.hook != nil {
		s.hook(e)
	}
}

// complain logs a failure, each kind at most every ten seconds.
func (s *Store) complain(f failure, err error) {
	if f == fine || s.closed.Load() || !s.mayLog(f) {
		return
	}
	if f == misconfigured {
		s.logger.Error("distributed: Redis refuses the limits until somebody mends it", "err", err)
		s.emit(Event{Kind: Misconfigured, Err: err})
		return
	}
	s.logger.Warn("distributed: Redis failed", "kind", f.String(), "err", err)
}

func (s *Store) mayLog(f failure) bool {
	const pause = 10 * time.Second
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if last := s.logged[f]; !last.IsZero() && now.Sub(last) < pause {
		return false
	}
	s.logged[f] = now
	return true
}

// register notes a new limiter. A name stands for one kind of limit: the
// values that two kinds keep under one key are not the same.
func (s *Store) register(l *Limiter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return ErrClosed
	}
	if kind, ok := s.kinds[l.name]; ok && kind != l.kind {
		return fmt.Errorf("distributed: %s %q: the name is taken by a %s", l.kind, l.name, kind)
	}
	s.kinds[l.name] = l.kind
	s.limiters = append(s.limiters, l)
	return nil
}

func (s *Store) everyLimiter() []*Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Limiter(nil), s.limiters...)
}

// recovered is called when a node is back for good.
func (s *Store) recovered() {
	for _, l := range s.everyLimiter() {
		if d := l.fallback.debts; d != nil {
			s.help(func() { d.settle(l) })
		}
	}
}
