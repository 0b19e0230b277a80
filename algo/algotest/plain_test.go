package algotest_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
)

// plain is a fixed window written by hand, and with slots a semaphore: a window that does not
// end, whose units come back with any outcome. Each mistake replaces one of its parts.
type plain struct {
	mu    sync.Mutex
	rate  algo.Rate
	slots bool
	keys  map[string]*spent

	key       func(key string) string
	now       func() time.Duration // since the limiter was made
	answer    func(d algo.Decision, n int64) algo.Decision
	peeked    func(d algo.Decision, n int64) algo.Decision
	charge    func(d algo.Decision, n int64) int64
	peekTakes int64
	settle    func(was, actual, free int64) int64
	back      func(h algo.Handle, o algo.Outcome) int64
	about     func(d algo.Description) algo.Description
	error     func(ctx context.Context, d algo.Decision) error
	unsafe    bool
	late      bool // Allowed is filled in after FillLease
	mints     bool // gives back what an earlier window has charged
}

// spent is what weighs on one key.
type spent struct{ window, units int64 }

func newPlain(r algo.Rate, slots bool) *plain {
	began := time.Now()
	l := &plain{rate: r, slots: slots, keys: make(map[string]*spent)}
	l.key = func(key string) string { return key }
	l.now = func() time.Duration { return time.Since(began) }
	l.answer = func(d algo.Decision, _ int64) algo.Decision { return d }
	l.peeked, l.about = l.answer, func(d algo.Description) algo.Description { return d }
	l.charge = func(d algo.Decision, n int64) int64 {
		if d.Allowed {
			return n
		}
		return 0
	}
	l.settle = func(was, actual, _ int64) int64 { return actual - was }
	l.back = func(h algo.Handle, o algo.Outcome) int64 {
		if l.slots || o.Result() == algo.Canceled {
			return h.N
		}
		return 0
	}
	l.error = func(context.Context, algo.Decision) error { return nil }
	return l
}

// of returns what weighs on key now.
func (l *plain) of(key string) *spent {
	s := l.keys[l.key(key)]
	if s == nil {
		s = new(spent)
		l.keys[l.key(key)] = s
	}
	if window := int64(l.now() / l.rate.Period); window > s.window {
		s.units = max(0, s.units-(window-s.window)*l.rate.Count)
		s.window = window
	}
	return s
}

// wait is the time until n units fit beside those that weigh.
func (l *plain) wait(s *spent, units, n int64) time.Duration {
	windows := (units + n - 1) / l.rate.Count // rounded up, less the one that is free
	return time.Duration(s.window+windows)*l.rate.Period - l.now()
}

func (l *plain) decide(s *spent, n int64) (d algo.Decision) {
	after := s.units
	d.Limit, d.Allowed = l.rate.Count, n == 0 || n <= l.rate.Count-s.units
	switch {
	case d.Allowed:
		after += n
	case n > d.Limit:
		d.Reason, d.RetryAfter = algo.Never, algo.Forever
	default:
		d.Reason, d.RetryAfter = algo.Quota, l.wait(s, s.units, n)
	}
	d.Remaining = max(0, d.Limit-after)
	if after > 0 {
		d.NextAfter, d.ResetAfter = l.wait(s, after, d.Remaining+1), l.wait(s, after, d.Limit)
	}
	return l.answer(d, n)
}

func (l *plain) Acquire(ctx context.Context, key string, n int64) (lease algo.Lease, err error) {
	if n < 0 {
		return lease, algo.ErrCost
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.of(key)
	d := l.decide(s, n)
	if l.unsafe {
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
	}
	s.units += l.charge(d, n)
	h := algo.Handle{Key: key, N: n, At: s.window}
	if l.late {
		lease.Allowed = true
		*algo.FillLease(&lease, l) = h
		lease.Decision = d
		return lease, nil
	}
	return algo.NewLease(d, l, h), l.error(ctx, d)
}

func (l *plain) Peek(_ context.Context, key string, n int64) (algo.Decision, error) {
	if n < 0 {
		return algo.Decision{}, algo.ErrCost
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.of(key)
	d := l.peeked(l.decide(s, n), n)
	s.units += l.peekTakes
	return d, nil
}

func (l *plain) Release(h algo.Handle, o algo.Outcome) { l.correct(h, -l.back(h, o)) }

func (l *plain) Settle(h algo.Handle, actual int64) {
	l.correct(h, l.settle(h.N, actual, l.rate.Count-l.keys[l.key(h.Key)].units))
}

// correct changes what weighs. Of an earlier window nothing comes back.
func (l *plain) correct(h algo.Handle, more int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.of(h.Key); s.window == h.At || more > 0 || l.mints {
		s.units += more
	}
}

func (l *plain) About() algo.Description {
	if l.slots {
		return l.about(algo.Description{Quota: l.rate.Count, Unit: algo.ConcurrentRequests, NeedsRelease: true})
	}
	return l.about(algo.Description{Rate: l.rate, Quota: l.rate.Count, Window: l.rate.Period})
}

func conform(t *testing.T, slots bool, plant func(l *plain)) {
	if slots {
		algotest.RunInFlight(t, func(limit int) (algo.Limiter, error) {
			l := newPlain(algo.Per(int64(limit), 1000*time.Hour), true)
			plant(l)
			return l, nil
		})
		return
	}
	algotest.Run(t, func(r algo.Rate, _ ...algo.Option) (algo.Limiter, error) {
		l := newPlain(r, false)
		plant(l)
		return l, nil
	}, algotest.Bound{Units: func(r algo.Rate, w time.Duration) int64 { return r.Count * (2 + int64(w/r.Period)) }})
}

// TestPlainLimitersConform: both limiters without a mistake pass.
func TestPlainLimitersConform(t *testing.T) {
	for name, slots := range map[string]bool{"over time": false, "in flight": true} {
		t.Run(name, func(t *testing.T) { conform(t, slots, func(*plain) {}) })
	}
}
