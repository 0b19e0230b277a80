package distributed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// ErrUnavailable reports that a call that cannot be decided locally, such as
// Reset or Block, did not reach Redis, or had no answer in time: it may have
// been carried out all the same.
var ErrUnavailable = errors.New("distributed: Redis is out of reach")

// Limiter is a limit whose state is in Redis. It is an [algo.Limiter].
type Limiter struct {
	store *Store
	name  string
	kind  string
	head  string // of every key in Redis, up to the tag
	tail  string // what follows the tag

	setting sync.Mutex // serialises SetRate and SetBurst
	asked   asked
	build   func(asked) (limit, error)
	limit   atomic.Pointer[limit]
	noBurst bool

	fallback fallback
	holders  *holders // of an in-flight limit; nil for others
	blocks   *blocks  // nil: every decision is exact
}

// newLimiter makes a limiter of any kind.
func (s *Store) newLimiter(kind, name string, a asked, build func(asked) (limit, error)) (*Limiter, error) {
	if name == "" || len(name) > longestTag {
		return nil, fmt.Errorf("distributed: %s: name %q has %d bytes, want 1 to %d", kind, name, len(name), longestTag)
	}
	l := &Limiter{
		store: s, name: name, kind: kind, build: build, noBurst: a.noBurst, holders: a.holders,
		head: s.prefix + ":{", tail: "}:" + escape(name),
	}
	l.fallback = fallback{limiter: l, keyed: a.keyed}
	if l.holders != nil {
		l.holders.limiter = l
	}
	if s.recovery == Settle && l.holders == nil {
		l.fallback.debts = newDebts()
	}
	if s.blocks > 0 {
		l.blocks = newBlocks(l)
	}
	if err := l.set(func(was *asked) { *was = a }); err != nil {
		return nil, err
	}
	if err := s.register(l); err != nil {
		return nil, err
	}
	l.fallback.resize() // the instances may have been counted meanwhile
	return l, nil
}

// set changes the limit. What keys owe stays owed, up to what the new limit
// can hold.
func (l *Limiter) set(change func(*asked)) error {
	l.setting.Lock()
	defer l.setting.Unlock()
	a := l.asked
	change(&a)
	lim, err := l.build(a)
	if err != nil {
		return fmt.Errorf("distributed: %s %q: %w", l.kind, l.name, err)
	}
	l.asked = a
	l.limit.Store(&lim)
	l.fallback.resize()
	return nil
}

func (l *Limiter) load() limit { return *l.limit.Load() }

// SetRate changes the rate while the limiter runs, in this process: the other
// instances decide by theirs until they are told too. See [Rules] for limits
// that change everywhere. A burst that was not set follows the rate's count.
func (l *Limiter) SetRate(r algo.Rate) error { return l.set(func(a *asked) { a.rate = r }) }

// SetBurst changes the burst while the limiter runs, in this process. Only
// buckets have one.
func (l *Limiter) SetBurst(n int64) error {
	if l.noBurst {
		return fmt.Errorf("distributed: %s %q: has no burst, got %d", l.kind, l.name, n)
	}
	return l.set(func(a *asked) { a.burst, a.burstSet = n, true })
}

// Describe says what callers are promised.
func (l *Limiter) Describe() (algo.Description, bool) { return l.load().describe(), true }

func (l *Limiter) redisKey(key string) string {
	if key == "" {
		return l.head + ":" + l.tail[2:] + l.tail
	}
	return l.head + escape(key) + l.tail
}

// Acquire charges n units to key if they fit; see [algo.Limiter]. It waits for
// Redis no longer than the store's timeout and ctx allow; then, or while Redis
// is known to be away, the fallback decides. The error is [algo.ErrCost] for a
// negative n, or [ErrClosed].
func (l *Limiter) Acquire(ctx context.Context, key string, n int64) (lease algo.Lease, err error) {
	if n < 0 {
		return lease, fmt.Errorf("distributed: %s %q: %w: n is %d, want 0 or more", l.kind, l.name, algo.ErrCost, n)
	}
	if l.store.closed.Load() {
		return lease, ErrClosed
	}
	l.store.registry.start()
	if l.blocks != nil && l.blocks.spend(&lease, key, n) {
		return lease, nil
	}
	c := call{ctx, key, l.redisKey(key), n, l.load()}
	if l.store.denied.denies(&lease.Decision, c.limit, c.redisKey, n) {
		return lease, nil
	}
	if !l.decide(c, &lease) {
		l.fallback.acquire(ctx, &lease, key, n)
	}
	return lease, nil
}

// call is one Acquire on its way.
type call struct {
	ctx      context.Context
	key      string
	redisKey string
	n        int64
	limit    limit
}

// decide lets Redis decide, and perhaps grant a block; false if there was no
// answer.
func (l *Limiter) decide(c call, lease *algo.Lease) bool {
	if l.blocks != nil {
		if k := l.blocks.takes(c); k != nil {
			return k.acquire(c, lease)
		}
	}
	return l.remote(c, lease)
}

func (l *Limiter) remote(c call, lease *algo.Lease) bool {
	e := l.ask(c, 0)
	if e == nil {
		return false
	}
	defer e.free()
	l.answer(lease, e, c)
	return true
}

// ask sends the question whether extra units more than c.n fit, and returns
// the answered entry; nil if there was no answer.
func (l *Limiter) ask(c call, extra int64) *entry {
	e := ask(c.limit.script(), c.redisKey, c.limit.acquire(c.n+extra))
	e.owner, e.limit, e.n = l, c.limit, c.n+extra
	if !l.store.call(c.ctx, e) {
		return nil
	}
	if e.err != nil || e.reply[len(e.reply)-1] == flagType {
		l.keyFault(e)
		e.free()
		return nil
	}
	return e
}

// answer turns what Redis said into a lease on c.n units.
func (l *Limiter) answer(lease *algo.Lease, e *entry, c call) {
	var d algo.Decision
	e.limit.explain(&d, e.now, e.reply, e.n)
	d.Source = algo.SourceRemote
	if l.store.fallback == Local {
		l.fallback.warm(c.key, &d)
	}
	if !d.Allowed || e.n == 0 {
		l.store.denied.note(e, &d)
		*lease = algo.NewLease(d, nil, algo.Handle{})
		return
	}
	h := algo.Handle{Key: c.key, N: c.n}
	e.limit.remember(&h, e)
	if l.holders != nil {
		l.holders.add(h)
	}
	*lease = algo.NewLease(d, (*releaser)(l), h)
}

// keyFault tells of an answer that concerns the key, not Redis.
func (l *Limiter) keyFault(e *entry) {
	if e.err == nil || classify(e.err) == fault {
		l.store.complain(fault, errType)
		l.store.emit(Event{Kind: KeyFault, Limiter: l.name, Err: errType})
	}
}

var errType = errors.New("distributed: a key holds a value that no limit has written")

// Reset forgives key what it owes and lifts a Block, everywhere. The error is
// ErrUnavailable, or what Redis answered.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	return l.order(ctx, key, args{opReset})
}

// Block denies key everything for d, everywhere, more than 0 and 365 days at
// most, or until what the key owes is paid off if that is later: a block
// forgives nothing. Afterwards the key starts afresh. A second Block can only
// prolong it; Reset lifts it. While Redis is away blocked keys are not known.
// Units that are in flight when their key is blocked no longer count.
func (l *Limiter) Block(ctx context.Context, key string, d time.Duration) error {
	if d <= 0 || d > maxSpan {
		return fmt.Errorf("distributed: %s %q: block is %v, want more than 0 and %v at most", l.kind, l.name, d, maxSpan)
	}
	return l.order(ctx, key, args{opBlock, d.Microseconds() + 1})
}

// order sends a command that Redis must carry out.
func (l *Limiter) order(ctx context.Context, key string, a args) error {
	if l.store.closed.Load() {
		return ErrClosed
	}
	redisKey := l.redisKey(key)
	defer l.store.denied.drop(redisKey)
	if l.blocks != nil {
		defer l.blocks.drop(key)
	}
	e := ask(l.load().script(), redisKey, a)
	if !l.store.call(ctx, e) {
		return fmt.Errorf("%w: %s %q: no answer", ErrUnavailable, l.kind, l.name)
	}
	defer e.free()
	switch {
	case e.err != nil:
		return fmt.Errorf("%w: %s %q: %w", ErrUnavailable, l.kind, l.name, e.err)
	case e.reply[len(e.reply)-1] == flagType:
		return fmt.Errorf("%s %q: %w", l.kind, l.name, errType)
	}
	return nil
}

// close returns what is held in advance.
func (l *Limiter) close() {
	if l.blocks != nil {
		l.blocks.close()
	}
}
