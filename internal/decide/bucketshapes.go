package decide

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Unbounded is no bound of a wait or of a queue.
const Unbounded = math.MaxInt64

// NewPacer makes a bucket of slack + 1 units with a queue of at most queue units, each with a wait
// of at most wait.
func NewPacer(r Rate, slack, queue int64, wait time.Duration) (*GCRA, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	switch {
	case slack < 0:
		return nil, fmt.Errorf("slack is %d, want 0 or more", slack)
	case queue < 0:
		return nil, fmt.Errorf("max queue is %d, want 0 or more", queue)
	case wait < 0:
		return nil, fmt.Errorf("max wait is %v, want 0 or more", wait)
	}
	span, err := r.span("slack", slack)
	if err != nil {
		return nil, err
	}
	t, most := r.emission(), r.maxSpan()
	if span > most-t {
		return nil, noRoom("slack", slack, r)
	}
	longest := most
	if queue <= most/t {
		longest = queue * t
	}
	return ownDebt(r, span+t, min(longest, r.Ticks(wait))), nil
}

func noRoom(field string, n int64, r Rate) error {
	return fmt.Errorf("%s is %d: at %v it leaves no room for a unit within %v", field, n, r, MaxSpan)
}

// NewNginx makes the bucket of nginx's limit_req: burst units in excess of the
// rate, the first delayAfter of them without a delay.
func NewNginx(r Rate, burst, delayAfter int64) (*GCRA, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	switch {
	case burst < 0:
		return nil, fmt.Errorf("burst is %d, want 0 or more", burst)
	case delayAfter < 0:
		return nil, fmt.Errorf("delay after is %d, want 0 or more", delayAfter)
	}
	excess, err := r.span("burst", burst)
	if err != nil {
		return nil, err
	}
	t := r.emission()
	if excess > r.maxSpan()-t {
		return nil, noRoom("burst", burst, r)
	}
	after := min(delayAfter, burst)
	return ownDebt(r, (after+1)*t, (burst-after)*t), nil
}

// NewStrict makes a bucket whose burst and refill together never exceed the
// rate's count in any period.
func NewStrict(r Rate, burst int64) (*GCRA, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	n := r.Count
	if burst < 1 || burst > n {
		return nil, fmt.Errorf("burst is %d, want 1 to the %d of the rate", burst, n)
	}
	if r.Period > MaxSpan-r.step {
		return nil, fmt.Errorf("rate: period is %v, want less than %v", r.Period, MaxSpan)
	}
	// One step more than the period, so that floor(period/T) < n-burst+1.
	return NewGCRA(Rate{n - burst + 1, r.Period + r.step, r.Resolution}, burst, 0)
}

// NewSmoothBursty makes the bucket of Guava's SmoothBursty: a charge waits for earlier debt only,
// at most wait. An idle bucket saves burst permits at the rate burstAt; at another rate, as many as
// it yields in the same time.
func NewSmoothBursty(r Rate, burst int64, burstAt Rate, wait time.Duration) (*GCRA, error) {
	if err := errors.Join(r.Validate(), burstAt.Validate()); err != nil {
		return nil, err
	}
	switch {
	case burst < 0:
		return nil, fmt.Errorf("burst is %d, want 0 or more", burst)
	case wait < 0:
		return nil, fmt.Errorf("max wait is %v, want 0 or more", wait)
	}
	depth, err := burstAt.span("burst", burst)
	if err != nil {
		return nil, err
	}
	return earlierDebt(r, depth, r.Ticks(wait)), nil
}
