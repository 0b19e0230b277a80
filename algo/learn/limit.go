package learn

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/decide"
)

// maxKeys is the number of keys for which a [Limit] learns; beyond it, it forgets the least
// recently used one.
const maxKeys = 1024

// Limit is a limiter that learns, for each key, the rate that a server allows. The clients of
// httpmw/client and grpcmw/client pass it the answers; other callers do so by
// [Limit.Answered]. It is safe for concurrent use.
type Limit struct {
	start func(key string) float64
	began time.Time
	mu    sync.Mutex
	keys  map[string]*learned
	all   Stats // without Rate and Wait
}

type learned struct {
	decide.Learner
	used  time.Duration
	stats Stats // without Rate and Wait
}

// New makes a limit that begins at start, the documented rate or a guess; the zero Rate means one
// unit a second. Until the first denial the rate doubles each .7 s while the server accepts; no
// answer more than doubles it, so one call a minute grows to two a minute.
func New(start algo.Rate) *Limit {
	rate := 1.
	if start.Count > 0 && start.Period > 0 {
		rate = float64(start.Count) / start.Period.Seconds()
	}
	return NewFunc(func(string) float64 { return rate })
}

// NewFunc makes a limit that begins at start(key) for each key, in units a second, above 0.
func NewFunc(start func(key string) float64) *Limit {
	return &Limit{start: start, began: time.Now(), keys: map[string]*learned{}}
}

// of returns the state of a key. The caller holds the lock.
func (l *Limit) of(key string) (*learned, time.Duration) {
	now := time.Since(l.began)
	m := l.keys[key]
	if m == nil {
		if len(l.keys) >= maxKeys {
			l.forget()
		}
		m = &learned{Learner: decide.NewLearner(l.start(key))}
		l.keys[key] = m
	}
	m.used = now
	return m, now
}

func (l *Limit) forget() {
	var oldest string
	least := time.Duration(math.MaxInt64)
	for key, m := range l.keys {
		if m.used < least {
			oldest, least = key, m.used
		}
	}
	delete(l.keys, oldest)
}

// Acquire admits n units if the learned rate allows the call to start now. RetryAfter of a denial
// is the time until it may. The limit has no burst: after a pause, calls start at the rate. A
// canceled lease leaves its place to the next call.
func (l *Limit) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	if n < 0 {
		return algo.Lease{}, fmt.Errorf("%w: n is %d", algo.ErrCost, n)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m, now := l.of(key)
	d := look(m.Ahead(now), n)
	if !d.Allowed || n == 0 {
		return algo.Lease{Decision: d}, nil
	}
	m.Start(now, n)
	d.Remaining, d.NextAfter = 0, m.Ahead(now)
	d.ResetAfter = d.NextAfter
	return algo.NewLease(d, (*leases)(l), algo.Handle{Key: key, N: n}), nil
}

// Peek answers as Acquire does, and starts no call; see [algo.Peeker].
func (l *Limit) Peek(_ context.Context, key string, n int64) (algo.Decision, error) {
	if n < 0 {
		return algo.Decision{}, fmt.Errorf("%w: n is %d", algo.ErrCost, n)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m, now := l.of(key)
	return look(m.Ahead(now), n), nil
}

// look returns the answer for n units while the next call has to wait, at any cost.
func look(wait time.Duration, n int64) algo.Decision {
	d := algo.Decision{Allowed: true, Limit: 1, NextAfter: wait, ResetAfter: wait}
	switch {
	case wait == 0:
		d.Remaining = 1
	case n > 0:
		d.Allowed, d.Reason, d.RetryAfter = false, algo.Quota, wait
	}
	return d
}

// Answer is a server's answer to a call.
type Answer struct {
	// Sent is when the call was sent.
	Sent time.Time
	// Units is what the call cost, 1 or more.
	Units int64
	// Denied reports whether the server denied the call because of a limit: 429,
	// RESOURCE_EXHAUSTED, or 503 with a Retry-After.
	Denied bool
	// Wait is how long the server wants no further call; 0 if unstated.
	Wait time.Duration
	// Rate is the rate that the server states, in units a second; 0 if unstated.
	Rate float64
}

// Learner learns from answers: a [Limit], or the Learned of package distributed.
type Learner interface {
	Answered(key string, a Answer)
	// Stats describes a key, or without one all keys in use.
	Stats(key ...string) Stats
}

// In returns the learners in l and in the limiters that it wraps.
func In(l algo.Limiter) (all []Learner) {
	for inner := range algo.Walk(l) {
		if learner, ok := inner.(Learner); ok {
			all = append(all, learner)
		}
	}
	return all
}

// Answered learns from the answer to a call of key. It ignores rates and waits that are
// negative.
func (l *Limit) Answered(key string, a Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, now := l.of(key)
	m.stats.Count(a)
	l.all.Count(a)
	sent := a.Sent.Sub(l.began)
	if a.Rate > 0 && !math.IsInf(a.Rate, 0) {
		m.Told(a.Rate)
	}
	if a.Denied {
		m.Denied(now, sent, max(a.Units, 1), max(a.Wait, 0))
		return
	}
	m.Accepted(now, sent, max(a.Units, 1))
	m.Closed(now, a.Wait)
}

// Stats describes a key, or without one all keys in use. The counts of all keys include forgotten
// ones.
func (l *Limit) Stats(key ...string) Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Since(l.began)
	if len(key) == 0 {
		s := l.all
		for _, m := range l.keys {
			s.Rate += m.Pace(now)
			s.Wait = max(s.Wait, m.Wait(now))
		}
		return s
	}
	m := l.keys[key[0]]
	if m == nil {
		return Stats{Rate: l.start(key[0])}
	}
	s := m.stats
	s.Rate, s.Wait = m.Pace(now), m.Wait(now)
	return s
}

// leases releases and settles the leases of a Limit.
type leases Limit

func (l *leases) Release(h algo.Handle, o algo.Outcome) {
	if o.Result() == algo.Canceled {
		l.Settle(h, 0)
	}
}

// Settle moves the start of the next call.
func (l *leases) Settle(h algo.Handle, actual int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.keys[h.Key]; m != nil {
		m.Correct(time.Since(l.began), actual-h.N)
	}
}
