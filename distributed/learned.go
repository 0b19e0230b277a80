package distributed

import (
	"context"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// Learned learns the rate limit of an upstream API, one for all instances; see package
// algo/learn. It is safe for concurrent use.
//
// Each call costs one round trip, and each answer another. Redis keeps the rate for a day
// after the last call. While Redis is away each of N instances continues at 1/N of the last
// rate R, without a burst, and learns alone from there: together at most R*t + N units in a
// time t, until they learn more.
type Learned struct {
	store   *Store
	name    string
	escaped string
	start   float64

	mu    sync.Mutex
	known map[string]learned // by key
	alone *learn.Limit       // while Redis is away; nil otherwise
	all   learn.Stats        // the counts of this instance
}

// learned holds Redis' last answer about a key, and what this instance has sent.
type learned struct {
	rate  float64   // in force
	next  time.Time // when a call could start
	kept  time.Time // end of a wait that Redis does not have
	stats learn.Stats
}

const (
	opAccepted = 1
	opDenied   = 2
	opCorrect  = 5
)

// Learned makes a limit that begins at the rate start, or at one unit a second for the zero Rate.
func (s *Store) Learned(name string, start algo.Rate) (*Learned, error) {
	if name == "" || len(name) > remote.MaxTag {
		return nil, fmt.Errorf("distributed: learned limit: name %q has %d bytes, want 1 to %d", name, len(name), remote.MaxTag)
	}
	if start == (algo.Rate{}) {
		start = algo.PerSecond(1)
	}
	if start.Count < 1 || start.Period <= 0 {
		return nil, fmt.Errorf("distributed: learned limit %q: rate is %v, want a positive one", name, start)
	}
	return &Learned{
		store: s, name: name, escaped: remote.Escape(name),
		start: float64(start.Count) / start.Period.Seconds(), known: map[string]learned{},
	}, nil
}

// Acquire admits n units if the learned rate allows the call to start now; see
// [learn.Limit.Acquire]. The error is [algo.ErrCost] for a negative n, or [ErrClosed].
func (l *Learned) Acquire(ctx context.Context, key string, n int64) (lease algo.Lease, err error) {
	d, answered, err := l.ask(ctx, key, n, n)
	switch {
	case err != nil:
	case !answered:
		lease, err = l.local().Acquire(ctx, key, n)
		lease.Source = algo.SourceFallback
	case n == 0 || !d.Allowed:
		lease.Decision = d
	default:
		d.Remaining = 0
		lease = algo.NewLease(d, (*learnedLeases)(l), algo.Handle{Key: key, N: n})
	}
	return lease, err
}

// Peek returns the answer of Acquire and starts no call.
func (l *Learned) Peek(ctx context.Context, key string, n int64) (algo.Decision, error) {
	d, answered, err := l.ask(ctx, key, n, 0)
	if err == nil && !answered {
		d, err = l.local().Peek(ctx, key, n)
		d.Source = algo.SourceFallback
	}
	return d, err
}

// About states no quota, because it is learned.
func (l *Learned) About() algo.Description { return algo.Description{NeedsRelease: true, Remote: true} }

// ask returns the answer for n units and charges charge of them, all or none.
func (l *Learned) ask(ctx context.Context, key string, n, charge int64) (d algo.Decision, answered bool, err error) {
	if n < 0 {
		return d, false, fmt.Errorf("distributed: learned limit %q: %w: n is %d, want 0 or more", l.name, algo.ErrCost, n)
	}
	if l.store.remote.Closed() {
		return d, false, ErrClosed
	}
	l.store.registry.start()
	ahead, answered := l.wait(key), true
	if ahead <= 0 {
		ahead, answered = l.do(ctx, key, remote.Args{opAcquire, charge})
	}
	d = algo.Decision{Allowed: true, Limit: 1, Source: algo.SourceRemote, NextAfter: ahead, ResetAfter: ahead}
	switch {
	case ahead == 0:
		d.Remaining = 1
	case n > 0:
		d.Allowed, d.Reason, d.RetryAfter = false, algo.Quota, ahead
	}
	return d, answered, nil
}

// Answered learns from the answer a to a call of key, and returns when Redis has it.
func (l *Learned) Answered(key string, a learn.Answer) {
	op := int64(opAccepted)
	if a.Denied {
		op = opDenied
	}
	age, wait := max(time.Since(a.Sent), 0), max(a.Wait, 0)
	args := remote.Args{op, max(a.Units, 1), 0, age.Microseconds(), wait.Microseconds(), millionths(a.Rate)}
	_, told := l.do(context.Background(), key, args)
	if !told {
		l.local().Answered(key, a)
	}
	l.count(key, a, told)
}

// count records an answer, and its wait in this process if Redis does not have it (told) or is
// away.
func (l *Learned) count(key string, a learn.Answer, told bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, ok := l.known[key]
	if !ok {
		k.rate = l.start
	}
	until := time.Now().Add(a.Wait)
	if until.After(k.next) {
		k.next = until
	}
	if !told && until.After(k.kept) {
		k.kept = until
	}
	k.stats.Count(a)
	l.all.Count(a)
	l.note(key, k)
}

// note stores k. The caller holds l.mu.
func (l *Learned) note(key string, k learned) {
	if len(l.known) >= maxLearned {
		clear(l.known)
	}
	l.known[key] = k
}

// wait returns the rest of a wait that Redis does not have.
func (l *Learned) wait(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.known[key].kept)
}

// Stats returns this instance's knowledge of a key, or without one of all keys in use: Rate and Wait
// from the last reply of Redis, or from this instance while Redis is away; Waits, Denied and Taught
// from the answers that this instance got.
func (l *Learned) Stats(key ...string) (s learn.Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(key) > 0 {
		return l.stats(key[0])
	}
	for one := range l.known {
		k := l.stats(one)
		s.Rate += k.Rate
		s.Wait = max(s.Wait, k.Wait)
	}
	s.Waits, s.Denied, s.Taught = l.all.Waits, l.all.Denied, l.all.Taught
	return s
}

// stats returns the Stats of key. The caller holds l.mu.
func (l *Learned) stats(key string) learn.Stats {
	k, ok := l.known[key]
	s := k.stats
	switch {
	case l.alone != nil:
		alone := l.alone.Stats(key)
		s.Rate, s.Wait = alone.Rate, alone.Wait
	case ok:
		s.Rate, s.Wait = k.rate, max(time.Until(k.next), time.Until(k.kept), 0)
	default:
		s.Rate = l.start
	}
	return s
}

// do runs the script for a key. ahead is how long a call has to wait; ok is false without an
// answer.
func (l *Learned) do(ctx context.Context, key string, a remote.Args) (ahead time.Duration, ok bool) {
	a[2] = millionths(l.start)
	r := remote.NewRequest(learnedScript, remote.Key(l.store.prefix, l.escaped, key), a)
	r.Name, r.N = l.name, a[1]
	if a[0] == opAcquire && a[1] > 0 {
		r.Undo = (*learnedLeases)(l)
	}
	if !l.store.remote.Do(ctx, r) {
		return 0, false
	}
	defer r.Free()
	if r.Err != nil || r.Answer(0).Flag() == flagWrongType {
		err := r.Err
		if err == nil {
			err = errWrongType
		}
		l.store.failed(remote.Classify(err), fmt.Errorf("learned limit %q: %w", l.name, err))
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alone = nil
	ahead = micros(r.Reply[0])
	k := l.known[key]
	k.rate, k.next = float64(r.Reply[1])/1e6, time.Now().Add(ahead)
	l.note(key, k)
	return ahead, true
}

// maxLearned bounds the keys that this process remembers.
const maxLearned = 1024

// local returns the limit for decisions without Redis: it begins at this instance's part of the
// last rates and keeps the waits.
func (l *Learned) local() *learn.Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alone == nil {
		known, n := maps.Clone(l.known), float64(l.store.registry.known().count)
		l.alone = learn.NewFunc(func(key string) float64 {
			if k, ok := known[key]; ok {
				return k.rate / n
			}
			return l.start / n
		})
		for key, k := range known {
			l.alone.Answered(key, learn.Answer{Sent: time.Now(), Wait: time.Until(k.next)})
		}
	}
	return l.alone
}

// millionths returns rate in millionths, as the script takes it; 0 for no rate.
func millionths(rate float64) int64 {
	if !(rate > 0) {
		return 0
	}
	return int64(math.Ceil(min(rate, 1e9) * 1e6))
}

// learnedLeases keeps the methods for leases and late replies out of Learned's public ones.
type learnedLeases Learned

func (l *learnedLeases) Release(h algo.Handle, o algo.Outcome) {
	if o.Result() == algo.Canceled {
		l.Settle(h, 0)
	}
}

// Settle moves the start of the next call.
func (l *learnedLeases) Settle(h algo.Handle, actual int64) {
	l.correct(remote.Key(l.store.prefix, l.escaped, h.Key), h.N-actual)
}

// UndoCharge refunds a charge whose caller has stopped waiting.
func (l *learnedLeases) UndoCharge(r *remote.Request) {
	if r.Err == nil && r.Answer(0).Flag() == flagAdmitted {
		l.correct(r.Keys[0], r.N)
	}
}

func (l *learnedLeases) correct(redisKey string, n int64) {
	r := remote.NewRequest(learnedScript, redisKey, remote.Args{opCorrect, n, millionths(l.start)})
	r.Name = l.name
	l.store.remote.Send(r)
}
