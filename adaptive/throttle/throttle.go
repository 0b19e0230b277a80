// Package throttle denies calls in the client that an overloaded backend is likely to
// reject. A server protects itself with package adaptive.
package throttle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/adaptive/internal/window"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/machine"
	"github.com/sluice-go/sluice/internal/option"
)

// Throttle denies calls in the client that an overloaded backend is likely to reject: the adaptive
// throttling of Google (Site Reliability Engineering, 2016, chapter 21). It is an [algo.Limiter];
// wrap the calls to one backend with one throttle.
//
// A call is denied with the probability
//
//	p = max(0, (requests - K*accepts) / (requests + 1))
//
// over the last two minutes, where requests counts the calls that have ended, and those denied
// here, and accepts the calls that the backend accepted. Calls under way do not count: use
// timeouts, so that calls to a hanging backend end.
//
//   - With K = 2 an overloaded backend receives about twice the calls that it can accept. A backend
//     that accepts at least half of its calls is never throttled.
//   - A backend that rejects everything receives one call every five seconds. The formula alone
//     would let a busy client call once in two minutes, and notice the recovery late. After the
//     recovery the calls grow by half every half minute.
//
// Release the lease with algo.Succeeded when the backend accepted the call, even if it answered
// with a client error, and with algo.Failed when it rejected the call, timed out or was
// unreachable. Canceled and untimed calls are not counted, nor is a lease that is never released.
//
// A denial has the reason Overload and a RetryAfter of one second, because the probability falls
// gradually. All keys share the throttle. An admission and its release allocate nothing.
//
// It has no bound: do not use it in servers, or for a limit that must hold.
type Throttle struct {
	k        float64
	ring     *window.Ring
	requests atomic.Int64 // sums over the ring
	accepts  atomic.Int64
	passed   atomic.Int64 // instant of the last admission while calls are denied
}

const (
	bucketWidth = int64(time.Second)
	buckets     = 120
	retryAfter  = time.Second
	probeEvery  = int64(5 * time.Second)
	mostUnits   = 1 << 40 // of a call; it keeps sums far from overflow
)

// Option adjusts a throttle at construction.
type Option struct {
	name  string
	apply func(*Throttle) error
}

func (o Option) split() (string, func(*Throttle) error) { return o.name, o.apply }

// WithK sets the calls per call that the backend accepts, 1 to 1000, by default 2. A lower value
// denies earlier and spares the backend, a higher one notices its recovery sooner.
func WithK(k float64) Option {
	return Option{"WithK", func(t *Throttle) error {
		t.k = k
		if !(k >= 1 && k <= 1000) {
			return fmt.Errorf("is %v, want 1 to 1000", k)
		}
		return nil
	}}
}

// New makes a throttle. It takes the option [WithK].
func New(opts ...Option) (*Throttle, error) {
	t := &Throttle{k: 2, ring: window.New(bucketWidth, buckets, now())}
	if err := option.Apply(t, opts, Option.split, nil); err != nil {
		return nil, fmt.Errorf("throttle: New: %w", err)
	}
	return t, nil
}

func now() int64 { return machine.Real{}.Now() }

// Acquire admits a call of weight n unless the backend is likely to reject it. It reads the
// clock only then. n = 0 is a peek; a negative n is [algo.ErrCost].
func (t *Throttle) Acquire(_ context.Context, _ string, n int64) (lease algo.Lease, err error) {
	if n < 0 {
		return lease, fmt.Errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	}
	if n == 0 {
		lease.Allowed = true
		return lease, nil
	}
	if t.probability() > 0 {
		at := now()
		t.turn(at)
		if rand.Float64() < t.probability() && !t.probe(at) {
			t.count(min(n, mostUnits), 0)
			lease.Reason, lease.RetryAfter = algo.Overload, retryAfter
			lease.NextAfter, lease.ResetAfter = retryAfter, retryAfter
			return lease, nil
		}
		if at-t.passed.Load() > bucketWidth {
			t.passed.Store(at) // a resolution of a second is enough
		}
	}
	lease.Allowed = true
	algo.FillLease(&lease, t).N = n
	return lease, nil
}

// probe reports whether this caller must now test a backend that is likely to reject.
func (t *Throttle) probe(at int64) bool {
	passed := t.passed.Load()
	return at-passed >= probeEvery && t.passed.CompareAndSwap(passed, at)
}

// probability returns the probability of a denial now.
func (t *Throttle) probability() float64 {
	requests, accepts := float64(t.requests.Load()), float64(t.accepts.Load())
	return max(0, (requests-t.k*accepts)/(requests+1))
}

// Probability returns the current probability of a denial, 0 to 1.
func (t *Throttle) Probability() float64 {
	t.turn(now())
	return t.probability()
}

func (t *Throttle) count(requests, accepts int64) {
	t.ring.Add(requests, accepts)
	t.requests.Add(requests)
	t.accepts.Add(accepts)
}

// turn clears old buckets. Each subtracts exactly its content, so the sums always match the
// buckets.
func (t *Throttle) turn(at int64) {
	first, last, won := t.ring.Begin(at)
	if !won {
		return
	}
	for i := first; i <= last; i++ {
		b := t.ring.At(i)
		t.requests.Add(-b.N.Swap(0))
		t.accepts.Add(-b.Sum.Swap(0))
	}
	t.ring.Finish(last)
}

// Release counts a call and its outcome. It implements [algo.Releaser]; callers use
// the lease's Release.
func (t *Throttle) Release(h algo.Handle, o algo.Outcome) {
	if o != algo.Succeeded && o != algo.Failed {
		return
	}
	n, accepted := min(h.N, mostUnits), int64(0)
	if o == algo.Succeeded {
		accepted = n
	}
	t.turn(now())
	t.count(n, accepted)
}

// Settle corrects the weight of a call, which is counted at its release. It implements
// [algo.Releaser]; callers use the lease's Settle.
func (t *Throttle) Settle(algo.Handle, int64) {}
