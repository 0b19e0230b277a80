package distributed

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// InFlight makes a limit of n units in flight at the same time, 1 to 10000,
// for each key and over all instances. A lease holds its units until Release.
// Its denials have the Reason [algo.Overload].
//
// Units whose holder is gone expire; see [Expiry]. While a lease is held the
// store renews it, so work may last as long as it likes.
//
// Bound: at most n units in flight, as long as Redis keeps its data and every
// holder reaches it once in each expiry. Releases that do not reach Redis free
// their units at the expiry. While Redis is away each instance admits up to its
// part of n, less what it holds already.
//
// Do not use it as a lock: a holder that stalls for longer than the expiry
// still believes that it holds its units. Do not use it for what an instance
// can carry by itself; see the package adaptive.
func (s *Store) InFlight(name string, n int, opts ...InFlightOption) (*Limiter, error) {
	const kind = "in-flight limit"
	h := heldLimit{limit: int64(n), expiry: 30 * time.Second}
	for i, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("distributed: %s %q: option %d is nil", kind, name, i)
		}
		if err := o(&h); err != nil {
			return nil, fmt.Errorf("distributed: %s %q: %w", kind, name, err)
		}
	}
	if n < 1 || n > mostHeld {
		return nil, fmt.Errorf("distributed: %s %q: n is %d, want 1 to %d", kind, name, n, mostHeld)
	}
	h.holders = newHolders(h.expiry)
	return s.newLimiter(kind, name, asked{noBurst: true, holders: h.holders}, func(a asked) (limit, error) {
		if a.rate != (algo.Rate{}) {
			return nil, fmt.Errorf("has no rate, got %v", a.rate)
		}
		return &h, nil
	})
}

// InFlightOption adjusts an in-flight limit.
type InFlightOption func(*heldLimit) error

// Expiry sets after what time the units of a holder that is gone are free
// again, 1 s to 1 h; the default is 30 s. Leases are renewed three times as
// often.
func Expiry(d time.Duration) InFlightOption {
	return func(h *heldLimit) error {
		h.expiry = d
		return within("expiry", d, time.Second, time.Hour)
	}
}

// heldLimit is units in flight: held.lua.
type heldLimit struct {
	limit   int64
	expiry  time.Duration
	holders *holders
}

func (u *heldLimit) script() *script { return heldScript }

func (u *heldLimit) largest() int64 { return u.limit }

func (u *heldLimit) acquire(n int64) args {
	if n > u.limit {
		n = 0
	}
	return args{opAcquire, u.expiry.Microseconds(), u.limit, n, newID()}
}

// explain: when a holder is done is not known. RetryAfter is when enough units
// would expire, one second at most.
func (u *heldLimit) explain(d *algo.Decision, now int64, reply []int64, n int64) {
	admitted := explainHeld(d, u.limit, u.expiry.Microseconds(), now, reply, n)
	verdict(d, n, u.limit, admitted, reply[2]-now)
	if d.Reason == algo.Quota {
		d.Reason, d.RetryAfter = algo.Overload, min(d.RetryAfter, time.Second)
		if reply[5] == flagBlocked {
			d.RetryAfter = d.ResetAfter
		}
	}
}

func (u *heldLimit) remember(h *algo.Handle, e *entry) { h.State[0] = e.args[4] }

func (u *heldLimit) refund(h algo.Handle, n int64) args {
	n = min(n, h.N)
	return args{opRefund, 0, 0, n, h.State[0], h.N - n}
}

func (u *heldLimit) owe(h algo.Handle, n int64) args {
	return args{opOwe, u.expiry.Microseconds(), mostHeld, min(n, mostHeld), h.State[0], h.N}
}

func (u *heldLimit) describe() algo.Description {
	return algo.Description{Quota: u.limit, Unit: algo.ConcurrentRequests}
}

func (u *heldLimit) share(in instances) (allowance, bool) {
	part := in.part(u.limit)
	return allowance{burst: part}, part > 0
}

// local: what this instance holds is counted already.
func (u *heldLimit) local(a allowance, _ []algo.Option) (stand, error) {
	u.holders.fit(a)
	return u.holders, nil
}
