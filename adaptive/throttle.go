package adaptive

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/machine"
)

// Throttle keeps a client from sending what its backend is going to refuse: the
// adaptive throttling of Google (Site Reliability Engineering, 2016, chapter
// 21). It is an [algo.Limiter]; wrap the calls to one backend with one
// throttle.
//
// A call is denied here with the probability
//
//	p = max(0, (requests - K*accepts) / (requests + 1))
//
// over the last two minutes, where requests counts what was asked for, what was
// denied here included, and accepts what the backend accepted. With K = 2 an
// overloaded backend sees about twice what it can accept, and one that accepts
// at least half of its calls is never throttled. One that refuses everything is
// still asked every five seconds: by the formula alone a busy client would ask
// it once in two minutes, and hardly notice that it is well again. From there
// the calls grow by half every half minute.
//
// Release the lease with algo.Succeeded when the backend accepted the call,
// even if the answer was that the caller was wrong, and with algo.Failed when
// it refused, timed out or was not there. Canceled and Ignored calls count as
// if they had not been made; a lease that is never released counts as refused.
//
// A denial has the reason Overload and a RetryAfter of one second: the
// probability falls as the past is forgotten, not at any instant. The key does
// not distinguish anybody. An admission and its release allocate nothing.
//
// It bounds nothing; it is not for servers, and not for a limit that must hold.
type Throttle struct {
	k float64
	*ring
	requests atomic.Int64 // the sums over the ring
	accepts  atomic.Int64
	passed   atomic.Int64 // when a call was admitted last
}

const (
	throttleBucket  = int64(time.Second)
	throttleBuckets = 120
	throttleRetry   = time.Second
	throttleProbe   = int64(5 * time.Second)
)

// WithK sets how many calls are made for each one that the backend accepts: 2
// by default, from 1 to 1000. Less denies earlier and spares the backend,
// more lets the client notice sooner that the backend is well again.
func WithK(k float64) Option { return Option{"WithK", func(s *settings) { s.k = k }} }

// NewThrottle makes a throttle. It takes the option [WithK].
func NewThrottle(opts ...Option) (*Throttle, error) {
	s := settings{min: 1, max: noLimit, k: 2}
	if err := configure("NewThrottle", &s, opts, "WithK"); err != nil {
		return nil, err
	}
	if !(s.k >= 1 && s.k <= 1000) {
		return nil, fmt.Errorf("adaptive: NewThrottle: K is %v, want 1 to 1000", s.k)
	}
	return &Throttle{k: s.k, ring: newRing(throttleBucket, throttleBuckets, now())}, nil
}

// Acquire counts a call of the weight n, and admits it unless the backend is
// expected to refuse it. n = 0 asks for the state without counting; a negative
// n is [algo.ErrCost].
func (t *Throttle) Acquire(_ context.Context, _ string, n int64) (lease algo.Lease, err error) {
	if n < 0 {
		return lease, fmt.Errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	}
	at := now()
	t.turn(at)
	if n == 0 {
		lease.Allowed = true
		return lease, nil
	}
	p := t.probability()
	t.count(weight(n), 0)
	if p > 0 && machine.Float64() < p && !t.probes(at) {
		lease.Reason, lease.RetryAfter = algo.Overload, throttleRetry
		lease.NextAfter, lease.ResetAfter = throttleRetry, throttleRetry
		return lease, nil
	}
	if at-t.passed.Load() > throttleBucket {
		t.passed.Store(at) // once a second is often enough
	}
	return algo.NewLease(algo.Decision{Allowed: true}, t, algo.Handle{N: n, At: at}), nil
}

// probes reports whether it is time to ask the backend although it is expected
// to refuse, and the caller is the one to do it.
func (t *Throttle) probes(at int64) bool {
	was := t.passed.Load()
	return at-was >= throttleProbe && t.passed.CompareAndSwap(was, at)
}

// probability is the probability that a call is denied now.
func (t *Throttle) probability() float64 {
	return refusal(float64(t.requests.Load()), float64(t.accepts.Load()), t.k)
}

func refusal(requests, accepts, k float64) float64 {
	return max(0, (requests-k*accepts)/(requests+1))
}

// Probability is the probability with which a call is denied at the moment, 0
// to 1.
func (t *Throttle) Probability() float64 {
	t.turn(now())
	return t.probability()
}

func (t *Throttle) count(requests, accepts int64) {
	t.add(requests, accepts)
	t.requests.Add(requests)
	t.accepts.Add(accepts)
}

// turn forgets what is too old. Each bucket gives back exactly what it holds,
// so the sums are those of the buckets.
func (t *Throttle) turn(at int64) {
	first, last, won := t.begin(at)
	if !won {
		return
	}
	for i := first; i <= last; i++ {
		b := t.at(i)
		t.requests.Add(-b.n.Swap(0))
		t.accepts.Add(-b.sum.Swap(0))
	}
	t.finish(last)
}

// Release counts how the call went. It implements [algo.Releaser]; callers use
// the lease's Release.
func (t *Throttle) Release(h algo.Handle, o algo.Outcome) {
	at := now()
	t.turn(at)
	switch o {
	case algo.Succeeded:
		t.count(0, weight(h.N))
	case algo.Ignored, algo.Canceled:
		t.undo(at, h, weight(h.N))
	}
}

// undo takes n calls back that are still remembered.
func (t *Throttle) undo(at int64, h algo.Handle, n int64) {
	if at-h.At < throttleBucket*(throttleBuckets-1) {
		t.count(-n, 0)
	}
}

// Settle corrects the weight of a call. It implements [algo.Releaser]; callers
// use the lease's Settle.
func (t *Throttle) Settle(h algo.Handle, actual int64) {
	at := now()
	t.turn(at)
	t.undo(at, h, weight(h.N)-weight(actual))
}
