package distributed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
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
	transport Transport
	settings
	router *router
	ctx    context.Context // of the commands; ends with the store
	cancel context.CancelFunc

	running    context.Context // of the background work; ends when Close begins
	stop       context.CancelFunc
	closed     atomic.Bool
	once       sync.Once
	goroutines sync.WaitGroup
	fetches    sync.WaitGroup // of blocks; none begins after their limiter's blocks are closed
	registry   registry
	denied     *denyCache
	lost       atomic.Int64 // corrections

	mu       sync.Mutex
	limiters map[*Limiter]bool
	names    map[string]nameUse
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
	return newStore(goRedis{client: client}, opts)
}

// NewWithTransport makes a store on another client of Redis: see [Transport]. The caller
// closes the client, after the store. The error concerns the options only.
func NewWithTransport(t Transport, opts ...Option) (*Store, error) {
	if t == nil {
		return nil, errors.New("distributed: the transport is nil")
	}
	return newStore(timed{t}, opts)
}

func newStore(t Transport, opts []Option) (*Store, error) {
	cfg, err := configure(opts)
	if err != nil {
		return nil, err
	}
	if g, is := t.(goRedis); is {
		t = g.within(cfg.replyTimeout())
	}
	s := &Store{transport: t, settings: cfg, limiters: map[*Limiter]bool{}, names: map[string]nameUse{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.running, s.stop = context.WithCancel(s.ctx)
	s.router = newRouter(s)
	s.denied = newDenyCache(cfg.denyCache)
	s.registry.init(s)
	return s, nil
}

// Close returns unspent blocks, leaves the registry of instances and waits until nothing is on the
// wire. Call it when the work is done: leases that end later refund nothing, so units in flight are
// held until their [Expiry]. After ten timeouts, at least a second, it stops dialing and repeating,
// and only waits for connections that are being read: in total at most this time plus the read
// timeout of the client, 3 s by default in go-redis. Acquire returns [ErrClosed] afterwards.
func (s *Store) Close() error {
	s.once.Do(func() {
		defer time.AfterFunc(s.replyTimeout(), s.cancel).Stop()
		s.mu.Lock() // no background work begins after this
		s.closed.Store(true)
		s.mu.Unlock()
		s.stop()
		s.goroutines.Wait()
		for _, l := range s.allLimiters() {
			l.blocks.close()
		}
		s.fetches.Wait()
		s.registry.leave()
		s.router.close()
		s.cancel()
	})
	return nil
}

// Ping reaches every node and counts this instance, as the first decisions would.
// Call it at start: it opens connections, loads the scripts, and reports why
// decisions would be local. The error is [ErrUnavailable], with the error of a
// node, with the time that replies take if that is longer than the timeout, or with
// the error of ctx.
func (s *Store) Ping(ctx context.Context) error {
	result := make(chan error, 1)
	if !s.background(func() { result <- s.ping() }) {
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
	if s.router.cluster.Load() {
		s.router.load("")
	}
	for key, q := range s.router.sampleKeys() {
		if err := q.breaker.writeProbe(key); err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		q.warm(key)
		if d := q.trips.distance(); d > s.timeout {
			return fmt.Errorf("%w: answers take %v, the timeout is %v: limits would be local", ErrUnavailable, d, s.timeout)
		}
	}
	if s.registry.needed() && !s.registry.beat() {
		return fmt.Errorf("%w: this instance was not counted", ErrUnavailable)
	}
	return nil
}

// Client returns the client that was passed to New; nil after
// [NewWithTransport].
func (s *Store) Client() redis.UniversalClient {
	g, _ := s.transport.(goRedis)
	return g.client
}

// Prefix returns the beginning of all keys of the store, escaped as it is in
// Redis.
func (s *Store) Prefix() string { return s.prefix }

// replyTimeout is how long a late reply is awaited, so that its charge can be
// refunded.
func (s *settings) replyTimeout() time.Duration { return max(time.Second, 10*s.timeout) }

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

// background runs f on a goroutine that Close waits for. It reports false after Close.
func (s *Store) background(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return false
	}
	s.goroutines.Go(f)
	return true
}

func (s *Store) emit(e Event) {
	switch e.Kind {
	case BreakerChanged:
		level := slog.LevelInfo
		if e.State == StateOpen {
			level = slog.LevelWarn
		}
		attrs := append([]any{"state", e.State.String()}, e.logged()...)
		if small := s.smallLimits(); e.State == StateOpen && len(small) > 0 {
			attrs = append(attrs, "limits_smaller_than_the_fleet", small)
		}
		s.logger.Log(s.ctx, level, "distributed: breaker "+breakerText[e.State], attrs...)
	case InstancesChanged:
		s.logger.Debug("distributed: the number of instances changed", "instances", e.Instances)
	}
	if s.hook != nil {
		s.hook(e)
	}
}

// smallLimits are the limits with less than a unit for each instance, at most ten.
func (s *Store) smallLimits() (names []string) {
	for _, l := range s.allLimiters() {
		if len(names) < 10 && l.fallback.tooSmall(s.registry.known()) {
			names = append(names, l.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
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

// logPause is the least time between two reports of one kind.
const logPause = 10 * time.Second

func (s *Store) mayLog(f failure) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if last := s.logged[f]; !last.IsZero() && now.Sub(last) < logPause {
		return false
	}
	s.logged[f] = now
	return true
}

// nameUse is the use of a name.
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
	if s.closed.Load() {
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

// renewSlots renews the units in flight of all limits.
func (s *Store) renewSlots() {
	for _, l := range s.allLimiters() {
		if l.slots != nil {
			l.slots.renewAll()
		}
	}
}
