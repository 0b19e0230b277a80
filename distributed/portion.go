package distributed

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
	"github.com/sluice-go/sluice/internal/decide"
)

// instances holds the number of instances that share the limits, and the rank of
// this one, from 0; -1 if unknown. assumed is set until the other instances have
// counted this one.
type instances struct {
	count, rank int
	assumed     bool
}

// part returns this instance's part of total, at least 1. The parts of N instances add up to
// at most max(total, N), and exactly to total if the ranks are known and total >= N.
func (in instances) part(total int64) int64 {
	n := int64(in.count)
	part := total / n
	if in.rank >= 0 && int64(in.rank) < total%n {
		part++
	}
	return max(part, 1)
}

// slower divides r by by, rounded down. A unit takes at most a year.
func slower(r algo.Rate, by int) algo.Rate {
	period := float64(r.Period) * float64(by)
	if shrink := math.Ceil(period / float64(decide.MaxSpan)); shrink > 1 {
		r.Count, period = int64(float64(r.Count)/shrink), math.Ceil(period/shrink)
	}
	return algo.Rate{Count: max(r.Count, 1), Period: time.Duration(min(period, float64(decide.MaxSpan)))}
}

// portion is this instance's part of a limit, for the decisions without Redis: some units,
// refilled at the rate R/N. For a cost above them the key saves from its first request on:
// it is charged when R/N has paid for all units. A key that is spent meanwhile saves longer.
//
// Bound: since the outage began all N portions of a limit with the burst B admit at most
// max(B, N) + R*t in a time t, and windows as much again at an edge. Costs up to the part
// keep that in any window of time; costs c above it save first, so in any window that begins
// later all instances together admit at most N*c + R*w.
type portion struct {
	algo.Limiter
	clock
	each float64 // nanoseconds in which R/N pays for a unit
	held int64   // units that a full key has besides the time that it saves: a window's are of that time

	mu     sync.Mutex
	saving map[string]time.Time // by key: since when it has been full
}

// maxSaving bounds the keys that save; beyond, any one of them starts again.
const maxSaving = 10_000

// clock is the function of the option [algo.Clock]; nil: the system's clock.
type clock func() time.Time

// options returns the options of a limiter on c.
func (c clock) options() []algo.Option {
	if c == nil {
		return nil
	}
	return []algo.Option{algo.Clock(c)}
}

func (c clock) now() time.Time {
	if c == nil {
		return time.Now()
	}
	return c()
}

// portionOf returns the portion that part describes, of a limit at the rate r: was, changed in use, or a
// new one. One unit at a time replaces a part that is no valid limit.
func portionOf(part algo.Spec, r algo.Rate, c clock, of instances, was algo.Limiter) algo.Limiter {
	p := &portion{clock: c, saving: map[string]time.Time{}}
	if before, ok := was.(*portion); ok && part.Apply(before.Limiter) == nil {
		p.Limiter, p.saving = before.Limiter, before.keep()
	} else if l, err := part.New(c.options()...); err == nil {
		p.Limiter = l
	} else {
		part = algo.Spec{Rate: slower(algo.Rate{Count: 1, Period: max(r.Period/time.Duration(r.Count), 1)}, of.count), Burst: 1, MaxKeys: part.MaxKeys, DenyNew: part.DenyNew}
		p.Limiter = algo.Must(part.New(c.options()...))
	}
	p.each = float64(r.Period) / float64(r.Count) * float64(of.count)
	p.held = part.Burst
	return p
}

// keep returns the keys that save, for the portion that replaces p.
func (p *portion) keep() map[string]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	saving := p.saving
	p.saving = map[string]time.Time{}
	return saving
}

// Acquire charges n units, up to the largest cost of the whole limit.
func (p *portion) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	lease, err := p.Limiter.Acquire(ctx, key, n)
	if err == nil && lease.Reason == algo.Never {
		return p.save(ctx, key, n, false)
	}
	return lease, err
}

// Peek answers as Acquire does, and saves nothing.
func (p *portion) Peek(ctx context.Context, key string, n int64) (algo.Decision, error) {
	d, err := algo.Peek(ctx, p.Limiter, key, n)
	if err == nil && d.Reason == algo.Never {
		lease, err := p.save(ctx, key, n, true)
		return lease.Decision, err
	}
	return d, err
}

// save admits n units, more than the part, if the key has saved them. With look it changes nothing.
func (p *portion) save(ctx context.Context, key string, n int64, look bool) (algo.Lease, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held, err := p.Limiter.Acquire(ctx, key, 0)
	if err != nil {
		return held, err
	}
	now := p.now()
	since, known := p.saving[key]
	if full := now.Add(held.ResetAfter); !known || held.ResetAfter > 0 || since.After(full) {
		since = full
	}
	needs := time.Duration(min(float64(n-p.held)*p.each, float64(algo.Forever)))
	if wait := max(needs-now.Sub(since), held.ResetAfter); wait > 0 {
		if !look {
			makeRoom(p.saving, key, maxSaving)
			p.saving[key] = since
		}
		d := held.Decision
		d.Allowed, d.Reason, d.Cause, d.RetryAfter = false, algo.Overload, cause.Store, wait
		return algo.NewLease(d, nil, algo.Handle{}), nil
	}
	if look {
		return algo.Lease{Decision: held.Decision}, nil
	}
	delete(p.saving, key)
	part, err := p.Limiter.Acquire(ctx, key, held.Limit)
	if err != nil || !part.Allowed { // a Reset or a change came in between
		return part, err
	}
	return algo.NewLease(part.Decision, &saved{lease: part, part: held.Limit, n: n}, algo.Handle{Key: key, N: n}), nil
}

// saved settles and releases a lease on n saved units, of which part was charged to the
// limiter.
type saved struct {
	lease   algo.Lease
	part, n int64
}

// Release refunds the part of a canceled admission. The saved units stay spent.
func (s *saved) Release(_ algo.Handle, o algo.Outcome) { s.lease.Release(o) }

// Settle charges units beyond the admission.
func (s *saved) Settle(_ algo.Handle, actual int64) {
	s.lease.Settle(max(s.part+actual-s.n, 0))
}
