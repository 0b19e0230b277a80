// Package meter charges work whose cost is known only while it runs, or not at all before:
// streams by the block ([Meter]), work that can be divided ([AtMost]), and estimates of what to
// reserve ([Estimator]). It works over any limit over time, in this process and on Redis.
package meter

import (
	"context"
	"fmt"
	"math"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/warning"
)

// Meter charges work whose cost is known only while it runs, such as a stream of tokens, to a limit over
// time: reserve, use, settle.
//
//	m, err := meter.Start(ctx, tokens, user, 200, 100)
//	if err != nil || !m.Allowed { ... }
//	defer m.Close()
//	for chunk := range stream {
//		d, err := m.Reserve(ctx, size(chunk))
//		m.Use(size(chunk))
//		if err != nil || !d.Allowed {
//			break // or go on: the rest is debt
//		}
//		...
//	}
//
// A Meter reserves units in blocks; on Redis one block takes one round trip. At the end it refunds the
// unused rest of the latest block, as far as that still weighs.
//
// Bound: the reserved units keep the bound of the limiter, in the instants of the reservations. A caller
// that reserves a chunk's largest cost before producing it keeps the bound. One that learns the cost
// from the chunk exceeds it by at most that chunk in each stream if it stops at the denial, or by the
// rest of the stream if it goes on; later admissions wait until this debt has drained.
//
// The limiter must be a limit over time, or several that count the same units ([algo.All]). A Meter
// allocates nothing while it runs. It is not safe for concurrent use.
type Meter struct {
	algo.Decision // of the latest reservation

	limiter    algo.Limiter // nil: denied at the start, or settled
	key        string
	block      int64
	used       int64
	charged    int64 // at least used; the difference is held by prev and last
	prev, last hold
}

// hold is a lease and its cost.
type hold struct {
	own      algo.Lease
	borrowed *algo.Lease // instead of own, if another part of the program releases it
	n        int64
}

func (h *hold) lease() *algo.Lease {
	if h.borrowed != nil {
		return h.borrowed
	}
	return &h.own
}

// end releases the lease, unless it is borrowed.
func (h *hold) end() { h.own.Release(algo.Succeeded) }

// Start charges n units, an estimate of the whole cost, to key. Units beyond the estimate are
// charged in blocks of at least block units. A few blocks a stream mean few calls and few unused
// units.
//
// If the limiter denies, Allowed is false and every method does nothing. The error is
// [algo.ErrCost] for a negative n or block, or the limiter's error; with an error the Meter is nil.
func Start(ctx context.Context, l algo.Limiter, key string, n, block int64) (*Meter, error) {
	if n < 0 || block < 0 {
		return nil, fmt.Errorf("%w: n is %d, block is %d, want 0 or more", algo.ErrCost, n, block)
	}
	l, err := algo.Resolve(ctx, l, key)
	if err != nil {
		return nil, err
	}
	lease, err := l.Acquire(ctx, key, n)
	if err != nil {
		return nil, err
	}
	m := &Meter{Decision: lease.Decision, key: key, block: block}
	if m.Allowed {
		m.limiter, m.charged, m.last = l, n, hold{own: lease, n: n}
	}
	return m, nil
}

// Reserve ensures that n units beyond the used ones are charged. The largest n of several calls
// counts: Use consumes the reserved units.
//
// A denial charges nothing, and RetryAfter of the Decision is the time until the units fit: the
// caller waits and asks again, stops, or goes on in debt. With a Delay the units may be used only
// then. The error is [algo.ErrCost] for a negative n, or the limiter's error.
//
// When ctx ends, a limit on Redis gives up and decides locally: with a request's context, the block
// in which the client hangs up is not charged on Redis. Pass context.WithoutCancel(ctx), as package
// httpmw/metered does.
func (m *Meter) Reserve(ctx context.Context, n int64) (algo.Decision, error) {
	short := n - (m.charged - m.used)
	switch {
	case n < 0:
		return algo.Decision{}, fmt.Errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	case m.limiter == nil:
		return algo.Decision{Reason: m.Reason, RetryAfter: m.RetryAfter}, nil
	case short <= 0:
		d := m.Decision
		d.Delay = 0 // slept out when these units were reserved
		return d, nil
	}
	rest := max(m.charged-m.used-m.last.n, 0) // of prev
	units := max(short, m.block-rest)
	ctx = algo.Tentative(ctx)
	lease, err := m.limiter.Acquire(ctx, m.key, units)
	if err == nil && !lease.Allowed && units > short {
		units = short // the block does not fit, but perhaps this
		lease, err = m.limiter.Acquire(ctx, m.key, units)
	}
	if err != nil || !lease.Allowed {
		return lease.Decision, err
	}
	m.hold(lease, units, rest)
	return m.Decision, nil
}

// hold replaces prev by a new lease and moves the rest of prev to it: it charges first, so that no
// other caller gets the rest meanwhile.
func (m *Meter) hold(lease algo.Lease, n, rest int64) {
	next := hold{own: lease, n: n}
	if m.charged += n; rest > 0 {
		m.charged += next.settle(rest) + m.prev.settle(-rest)
	}
	m.prev.end()
	m.Decision, m.prev, m.last = lease.Decision, m.last, next
}

// Use counts n units as used. Units that were not reserved are charged at once. If they
// do not fit they become debt, as [algo.Lease.Settle] describes. A negative n changes
// nothing, and is logged once with the code algo.negative_usage.
func (m *Meter) Use(n int64) {
	switch {
	case n < 0:
		warning.NegativeUsage.Log()
		return
	case m.limiter == nil:
		return
	}
	m.used += min(n, math.MaxInt64-m.used)
	if over := m.used - m.charged; over > 0 {
		m.charged += m.last.settle(over)
	}
}

var warnSettledTwice = &warning.Once{Line: warning.Line{
	Code:    "algo.settled_twice",
	Message: "algo: a Meter is settled already, with another total, which does not count",
	Do:      "find out why the usage is reported twice",
}}

func (h *hold) settle(n int64) int64 {
	was := h.n
	h.n = max(was+min(n, math.MaxInt64-was), 0)
	h.lease().Settle(h.n)
	return h.n - was
}

// Used returns the units used so far, or Settle's argument after it.
func (m *Meter) Used() int64 { return m.used }

// Settle ends the Meter with the true cost: the usage that an upstream reports at the end, or
// [Meter.Used]. It charges a higher total, as Use does. For a lower one it refunds the rest from
// the two latest charges, as far as each still weighs; earlier blocks stay charged. A second call
// changes nothing, so a repeated report counts once; a different total is logged once with the code
// algo.settled_twice. A negative total is ignored and logged, as in Use, and the Meter goes on.
func (m *Meter) Settle(total int64) {
	switch {
	case total < 0:
		warning.NegativeUsage.Log()
		return
	case m.limiter == nil:
		if m.Allowed && total != m.used {
			warnSettledTwice.Log()
		}
		return
	}
	if total > m.used {
		m.Use(total - m.used)
	}
	if less := m.charged - total; less > 0 {
		less += m.last.settle(-less)
		m.prev.settle(-less)
	}
	m.used, m.limiter = total, nil
	m.last.end()
	m.prev.end()
}

// Close settles the used units, unless Settle was called. Defer it, to refund the reservation of a
// stream that panics or is cut off.
func (m *Meter) Close() { m.Settle(m.used) }
