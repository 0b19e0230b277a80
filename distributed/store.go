package distributed

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Store makes limiters whose state is in Redis, and owns the parts that they
// share: the queues to the nodes, the breakers, and the count of the instances.
//
// One store for each client is enough; the names of limits keep them apart.
type Store struct {
	client redis.UniversalClient
	settings
	router *router
	ctx    context.Context // of the commands; ends with the store
	cancel context.CancelFunc

	running    context.Context // of the background work; ends when Close begins
	stop       context.CancelFunc
	closed     atomic.Bool
	once       sync.Once
	goroutines sync.WaitGroup
	registry   registry
	denied     *denyCache

	mu       sync.Mutex
	limiters []*Limiter
	kinds    map[string]string // name of a limit to its kind
	logged   [failures]time.Time
}

// New makes a store on any client of go-redis: a single server, Sentinel,
// Cluster or Ring. It does not dial and does not fail while Redis is away; the
// error concerns the options only. The caller closes the client, after the
// store.
//
// On a Ring, keys move when a shard goes down or comes back; a moved key starts
// with a full bucket.
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
	s.running, s.stop = context.WithCancel(s.ctx)
	s.router = newRouter(s, client)
	s.denied = newDenyCache(cfg.denyCache)
	s.registry.init(s)
	return s, nil
}

// Close returns unspent blocks, leaves the registry of instances and waits
// until nothing is on the wire, which takes as long as the client's read
// timeout if Redis does not reply. Acquire returns [ErrClosed] afterwards.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.mu.Lock() // no background work begins after this
		s.closed.Store(true)
		s.mu.Unlock()
		s.stop()
		s.goroutines.Wait()
		for _, l := range s.allLimiters() {
			l.blocks.close()
		}
		s.registry.leave()
		s.router.close()
		s.cancel()
	})
	return nil
}

// Client returns the client of the store.
func (s *Store) Client() redis.UniversalClient { return s.client }

// Prefix returns the beginning of all keys of the store, escaped as it is in
// Redis.
func (s *Store) Prefix() string { return s.prefix }

// replyTimeout is how long a late reply is awaited, so that its charge can be
// refunded.
func (s *Store) replyTimeout() time.Duration { return max(time.Second, 10*s.timeout) }

// sleep waits. It reports false if the store is closed meanwhile.
func (s *Store) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.running.Done():
		return false
	}
}

// background runs f on a goroutine until Close.
func (s *Store) background(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed.Load() {
		s.goroutines.Go(f)
	}
}

func (s *Store) emit(e Event) {
	switch e.Kind {
	case BreakerChanged:
		level := slog.LevelInfo
		if e.State == StateOpen {
			level = slog.LevelWarn
		}
		s.logger.Log(s.ctx, level, "distributed: breaker "+breakerText[e.State], "state", e.State.String(), "node", e.Node, "err", e.Err)
	case InstancesChanged:
		n := s.registry.known()
		s.logger.Debug("distributed: the number of instances changed", "count", n.count, "rank", n.rank)
	}
	if s.hook != nil {
		s.hook(e)
	}
}

// breakerText is the consequence of each state of a breaker.
var breakerText = [...]string{
	StateClosed:  "closed: Redis makes the decisions",
	StateOpen:    "open: Redis does not reply, limits are decided locally",
	StateRamping: "ramping: Redis replies again and makes a growing part of the decisions",
}

// logFailure logs a failure, each kind at most every ten seconds.
func (s *Store) logFailure(f failure, err error) {
	if f == noFailure || s.closed.Load() || !s.mayLog(f) {
		return
	}
	switch f {
	case misconfigured:
		s.logger.Error("distributed: Redis rejected a script (check ACL and configuration); limits are decided locally", "err", err)
		s.emit(Event{Kind: Misconfigured, Err: err})
	case keyFault:
		s.logger.Warn("distributed: Redis cannot decide about a key; its limits are decided locally", "kind", f.String(), "err", err)
	default:
		s.logger.Warn("distributed: a Redis command failed; its limits are decided locally", "kind", f.String(), "err", err)
	}
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

// register adds a new limiter. All limits of one name have the same kind,
// because the values that two kinds keep under a key differ.
func (s *Store) register(l *Limiter) (*Limiter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return nil, ErrClosed
	}
	if kind, ok := s.kinds[l.name]; ok && kind != l.kind {
		return nil, l.errorf("the name belongs to a %s; choose another name", kind)
	}
	s.kinds[l.name] = l.kind
	s.limiters = append(s.limiters, l)
	l.fallback.resize() // the instances may have been counted meanwhile
	return l, nil
}

func (s *Store) allLimiters() []*Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Limiter(nil), s.limiters...)
}

// recovered is called when a node's breaker has closed.
func (s *Store) recovered() {
	for _, l := range s.allLimiters() {
		if d := l.fallback.debts; d != nil {
			s.background(func() { d.charge(l) })
		}
	}
}
