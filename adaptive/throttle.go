package adaptive

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// Throttle denies calls in the client that an overloaded backend is likely to
// reject: the adaptive throttling of Google (Site Reliability Engineering, 2016,
// chapter 21). It is an [algo.Limiter]; wrap the calls to one backend with one
// throttle.
//
// A call is denied with the probability
//
//	p = max(0, (requests - K*accepts) / (requests + 1))
//
// over the last two minutes, where requests counts the calls that have ended, and those
// denied here, and accepts the calls that the backend accepted. Calls under way are no
// evidence: use timeouts, so that calls to a backend that hangs end.
//
//   - With K = 2 an overloaded backend receives about twice the calls that it can
//     accept. A backend that accepts at least half of its calls is never throttled.
//   - A backend that rejects everything receives one call every five seconds. The
//     formula alone would let a busy client call once in two minutes, and notice the
//     recovery late. After the recovery the calls grow by half every half minute.
//
// Release the lease with algo.Succeeded when the backend accepted the call, even if
// it answered with a client error, and with algo.Failed when it rejected the call,
// timed out or was unreachable. Canceled and untimed calls are not counted, nor is a lease
// that is never released.
//
// A denial has the reason Overload and a RetryAfter of one second: the probability
// falls gradually and not at any instant. All keys share the throttle. An admission
// and its release allocate nothing.
//
// It has no bound. Do not use it in servers, or for a limit that must hold.
type Throttle struct {
	k float64
	*bucketRing
	requests atomic.Int64 // sums over the ring
	accepts  atomic.Int64
	passed   atomic.Int64 // instant of the last admission
}

const (
	throttleBucket  = int64(time.Second)
	throttleBuckets = 120
	throttleRetry   = time.Second
	throttleProbe   = int64(5 * time.Second)
)

// WithK sets the number of calls per call that the backend accepts: 2 by default,
// from 1 to 1000. A lower value denies earlier and spares the backend, a higher one
// notices the recovery of the backend sooner.
func WithK(k float64) Option { return Option{"WithK", func(s *settings) { s.k = k }} }

// NewThrottle makes a throttle. It takes the option [WithK].
func NewThrottle(opts ...Option) (*Throttle, error) {
	s := settings{k: 2}
	if err := configure("NewThrottle", &s, opts, "WithK"); err != nil {
		return nil, fmt.Errorf("adaptive: %w", err)
	}
	if !(s.k >= 1 && s.k <= 1000) {
		return nil, fmt.Errorf("adaptive: NewThrottle: K is %v, want 1 to 1000", s.k)
	}
	return &Throttle{k: s.k, bucketRing: newBucketRing(throttleBucket, throttleBuckets, now())}, nil
}

// Acquire admits a call of weight n unless the backend is likely to reject it. n = 0 is a peek; a negative n is [algo.ErrCost].
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
	if p := t.probability(); p > 0 && rand.Float64() < p && !t.probe(at) {
		t.count(weight(n), 0)
		lease.Reason, lease.RetryAfter = algo.Overload, throttleRetry
		lease.NextAfter, lease.ResetAfter = throttleRetry, throttleRetry
		return lease, nil
	}
	if at-t.passed.Load() > throttleBucket {
		t.passed.Store(at) // a resolution of a second is enough
	}
	return algo.NewLease(algo.Decision{Allowed: true}, t, algo.Handle{N: n}), nil
}

// probe reports whether it is time to call a backend that is likely to reject, and
// the caller is the one to do it.
func (t *Throttle) probe(at int64) bool {
	passed := t.passed.Load()
	return at-passed >= throttleProbe && t.passed.CompareAndSwap(passed, at)
}

// probability is the probability of a denial now.
func (t *Throttle) probability() float64 {
	return denialProbability(float64(t.requests.Load()), float64(t.accepts.Load()), t.k)
}

func denialProbability(requests, accepts, k float64) float64 {
	return max(0, (requests-k*accepts)/(requests+1))
}

// Probability is the current probability of a denial, 0 to 1.
func (t *Throttle) Probability() float64 {
	t.turn(now())
	return t.probability()
}

func (t *Throttle) count(requests, accepts int64) {
	t.add(requests, accepts)
	t.requests.Add(requests)
	t.accepts.Add(accepts)
}

// turn clears the buckets that are too old. Each subtracts exactly its content,
// so the sums always match the buckets.
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

// Release counts a call and its outcome. It implements [algo.Releaser]; callers use
// the lease's Release.
func (t *Throttle) Release(h algo.Handle, o algo.Outcome) {
	n := weight(h.N)
	t.turn(now())
	switch o {
	case algo.Succeeded:
		t.count(n, n)
	case algo.Failed:
		t.count(n, 0)
	}
}

// Settle corrects the weight of a call, which is counted at its release. It implements
// [algo.Releaser]; callers use the lease's Settle.
func (t *Throttle) Settle(algo.Handle, int64) {}
