package distributed

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
)

// Region makes the limit of global for one of several regions. s is a store on the Redis of
// the region, global a token or leaky bucket without a MaxWait on the Redis that all regions
// share. A decision takes a round trip to the Redis of the region, which asks global in the
// background. Make it once in each instance, with the same arguments in all regions; the
// limit has the name of global.
//
// A region spends units that it has leased and global has charged: as many as were asked for
// during three leases, as observed in the last two seconds. One instance of the region leases
// for all. Without leased units the region admits in advance, and the next lease covers that
// debt. Each region may hold half of maxExcess/regions units, and have as much debt.
//
// Bound: in any window of length w all regions together admit of each key at most
//
//	Burst + rate*w + maxExcess
//
// and Burst + rate*w in the long run, even if instances and leases are lost; maxExcess is at
// least regions and at most Burst. A region that cannot reach global spends its leased
// units, and then its floor: maxExcess/(2*regions) units in each time in which the bucket
// fills (Burst/rate, at least 10 s); each region that is cut off adds this amount to the
// bound. After that time leased units are void, and so is a debt that global could not
// cover while the key was idle. Without the Redis of the region its instances divide its
// floor; see [WithFallback]. If that Redis loses its data, the debt is lost.
//
// The largest cost is maxExcess/regions; one above half of that is denied at first, until its
// units are leased. To use the whole rate a region must be able to hold the units that it
// spends during three leases: a maxExcess of 6*regions*rate times the round trip to global.
// The store of global needs a [WithTimeout] above that. Limit and Remaining of a decision
// are the region's; its RetryAfter is the time of the next lease and not exact. Reset and Ban
// affect only the region, and the limit cannot be changed in use.
//
// Do not use it where a key is spent in one region only: a limit there is exact. The error
// names the argument.
func (s *Store) Region(global *Limiter, regions int, maxExcess int64) (*Limiter, error) {
	if global == nil {
		return nil, errors.New("distributed: region: the limit of all regions is nil")
	}
	b, ok := global.load().(*bucket)
	switch {
	case !ok || b.MaxWait > 0:
		return nil, global.errorf("region: want a token or leaky bucket without MaxWait")
	case global.store == s:
		return nil, global.errorf("region: want the store of another Redis, of the region")
	case regions < 1 || maxExcess < int64(regions) || maxExcess > b.gcra.Limit():
		return nil, global.errorf("region: %d regions and an excess of %d, want 1 or more, and an excess of %d (regions) to %d (burst)", regions, maxExcess, regions, b.gcra.Limit())
	}
	l, err := s.prepare("region", global.name)
	if err != nil {
		return nil, err
	}
	l.escaped += "::region" // all regions and one region may share a Redis
	l.replace(newRegion(global, b, regions, maxExcess))
	return s.register(l)
}

// region is a limit that region.lua decides, with [decide.Escrow].
type region struct {
	decide.Escrow
	global *Limiter
	spec   algo.Spec // of the floor
	clock
	window time.Duration
}

func newRegion(global *Limiter, b *bucket, regions int, maxExcess int64) *region {
	part := maxExcess / int64(regions)
	const least = 10 * time.Second
	r := &region{global: global, clock: b.clock, window: micros(part * b.Emission)}
	r.Hold = part / 2
	r.Advance = part - r.Hold
	memory := max(micros(b.Depth), least)
	r.Memory = memory.Microseconds()
	r.Patience = (2*global.store.timeout + time.Second).Microseconds()
	r.spec = algo.Spec{Rate: algo.Rate{Count: r.Advance, Period: memory}, Burst: r.Advance}
	return r
}

func (g *region) script() *remote.Script { return regionScript }

func (g *region) maxCost() int64 { return g.Advance + g.Hold }

func (g *region) words(op, n int64) remote.Args {
	return remote.Args{op, n, g.Advance, g.Hold, g.Memory, g.Patience}
}

func (g *region) acquireArgs(_ string, n int64) remote.Args {
	return g.words(opAcquire, possible(n, g.maxCost()))
}

func (g *region) explain(a remote.Answer, n int64) (algo.Decision, algo.Handle) {
	left := a.Reply[0] + g.Advance
	switch {
	case a.Flag() == flagBanned:
		return whileBanned(g, n, a.Reply[0]-a.Now), algo.Handle{}
	case n > g.maxCost():
		return algo.Decision{Reason: algo.Never, Limit: g.maxCost(), Remaining: max(left, 0), RetryAfter: algo.Forever}, algo.Handle{}
	}
	next := micros(a.Reply[3])
	d := algo.Decision{Allowed: n == 0 || n <= left, Limit: g.maxCost(), Remaining: max(left, 0), NextAfter: next, ResetAfter: next}
	if !d.Allowed {
		d.Reason, d.RetryAfter = algo.Quota, next
	} else {
		d.Remaining = max(left-n, 0)
	}
	return d, algo.Handle{N: n}
}

func (g *region) refundArgs(_ algo.Handle, n int64) remote.Args { return g.words(opRefund, n) }

func (g *region) forceArgs(_ string, _ algo.Handle, n int64) remote.Args {
	return g.words(opForce, min(n, g.global.load().maxCost()))
}

func (g *region) resetArgs(string) remote.Args { return remote.Args{opReset} }

func (g *region) describe() algo.Description {
	return algo.Description{Rate: g.spec.Rate, Quota: g.maxCost(), Window: g.window}
}

func (g *region) local(of instances, was algo.Limiter) algo.Limiter {
	s := g.spec
	s.Rate, s.Burst = slower(s.Rate, of.count), of.part(s.Burst)
	return portionOf(s, g.spec.Rate, g.clock, of, was)
}

// leaseIfAsked leases in the background the units that the reply to r asks for.
func (g *region) leaseIfAsked(home *Limiter, r *remote.Request, key string) {
	want, name := r.Answer(0).Reply[1], r.Answer(0).Reply[2]
	if want == 0 || r.Answer(0).Flag() == flagBanned {
		return
	}
	home.store.remote.Background(func() {
		began := time.Now()
		units, wait, reached := g.lease(home.store.remote.Running(), key, want)
		trip := int64(-1)
		if reached {
			trip = time.Since(began).Microseconds()
		}
		a := remote.Args{opLease, units, trip, g.Hold, g.Memory, name, wait.Microseconds()}
		home.store.remote.Send(remote.NewRequest(regionScript, home.redisKey(key), a))
	})
}

// dropLease lets another caller lease the units that the late reply to r asks for.
func (g *region) dropLease(home *Limiter, r *remote.Request) {
	if want, name := r.Answer(0).Reply[1], r.Answer(0).Reply[2]; want > 0 {
		home.store.remote.Send(remote.NewRequest(regionScript, r.Keys[0], remote.Args{opLease, 0, -1, g.Hold, g.Memory, name, 0}))
	}
}

// lease charges global with as many of want units as fit. wait is the time until the next
// lease; reached reports whether global answered.
func (g *region) lease(ctx context.Context, key string, want int64) (units int64, wait time.Duration, reached bool) {
	lim := g.global.load()
	want = min(want, lim.maxCost())
	d, reached := g.charge(ctx, lim, key, want)
	if !reached {
		return 0, g.global.store.probeInterval, false
	}
	if d.Allowed {
		return want, 0, true
	}
	wait = d.RetryAfter
	if rest := d.Remaining; rest > 0 {
		if d, ok := g.charge(ctx, lim, key, rest); ok && d.Allowed {
			return rest, wait, true
		}
	}
	return 0, wait, true
}

func (g *region) charge(ctx context.Context, lim limit, key string, n int64) (d algo.Decision, reached bool) {
	l := g.global
	if l.isClosed() {
		return d, false
	}
	r := l.ask(call{ctx: ctx, key: key, redisKey: l.redisKey(key), n: n, limit: lim}, 0)
	if r == nil {
		return d, false
	}
	defer r.Free()
	d, _ = lim.explain(r.Answer(0), n)
	if d.Allowed {
		l.store.denied.outdate(r.Keys[0])
	}
	return d, true
}
