package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/zeromicro/go-zero/core/load"
	"golang.org/x/sync/semaphore"
)

const (
	fixedLimit = "sluice Fixed"
	bbrLimit   = "sluice BBR"

	defaultLimit = "sluice Default"
)

// gate is an in-flight limit. Once asks for a place and, unless it is to keep
// it, gives it back.
type gate struct {
	name string
	kind kind
	once func(keep bool) (admitted bool)
	fill func() // nil: keep places until there are none
}

// asked makes contenders of gates.
func asked(gates []gate) (cs []contender) {
	for _, g := range gates {
		cs = append(cs, contender{g.name, g.kind, again(func() bool { return g.once(false) })})
	}
	return cs
}

// full makes contenders of gates that have no place left.
func full(gates []gate) []contender {
	for _, g := range gates {
		if g.fill != nil {
			g.fill()
			continue
		}
		for g.once(true) {
		}
	}
	return asked(gates)
}

// again repeats. Every contender of a group, the floor too, pays for the call.
func again(admitted func() bool) func(int) int {
	return func(n int) (count int) {
		for range n {
			if admitted() {
				count++
			}
		}
		return count
	}
}

// fixedGates are limits of n. The floor swaps a word and swaps it back.
func fixedGates(n int) []gate {
	sem := semaphore.NewWeighted(int64(n))
	hull := bulkhead.New[any](uint(n))
	return []gate{
		{"floor: swap, swap", floor, inFlightFloor(n, func() time.Duration { return 0 }), nil},
		{fixedLimit, ours, ourGate(adaptive.Fixed(n)), nil},
		{"x/sync semaphore", peer, func(keep bool) bool {
			ok := sem.TryAcquire(1)
			if ok && !keep {
				sem.Release(1)
			}
			return ok
		}, nil},
		{"failsafe-go bulkhead", peer, func(keep bool) bool {
			ok := hull.TryAcquirePermit()
			if ok && !keep {
				hull.ReleasePermit()
			}
			return ok
		}, nil},
	}
}

// inFlightFloor counts requests in flight and reads a clock before and after. A
// denial only compares.
func inFlightFloor(n int, clock func() time.Duration) func(keep bool) bool {
	var taken atomic.Int64
	limit := int64(n)
	return func(keep bool) bool {
		was := taken.Load()
		if was >= limit {
			return false
		}
		begin := clock()
		for !taken.CompareAndSwap(was, was+1) {
			was = taken.Load()
		}
		if keep {
			return true
		}
		taken.Add(-1)
		return clock() >= begin
	}
}

// ourGate goes through the interface, as an adapter does.
func ourGate(s adaptive.Strategy, opts ...adaptive.Option) func(keep bool) bool {
	var l algo.Limiter = algo.Must(adaptive.New(s, opts...))
	ctx := context.Background()
	return func(keep bool) bool {
		lease, err := l.Acquire(ctx, "", 1)
		if err != nil || !lease.Allowed {
			return false
		}
		if !keep {
			lease.Release(algo.Succeeded)
		}
		return true
	}
}

// adaptiveGates are self-tuning limits. A limiter that measures the duration of
// work has to read the clock twice. The service is calm: limiters with a
// processor signal have thresholds above the load of this program. Without
// places, their signal always reports overload, or their limit is at most one.
func adaptiveGates(places bool) []gate {
	most, threshold := 1, int64(0) // of 1000 shares of the processor
	if places {
		most, threshold = 1000, 1001
	}
	start := time.Now()
	lim := adaptivelimiter.NewBuilder[any]().WithLimits(uint(most), uint(most), uint(most)).Build()
	aegis := bbr.NewLimiter(bbr.WithCPUThreshold(threshold))
	limits := adaptive.WithLimits(most, most)
	return []gate{
		{"floor: clock, swap, clock, swap", floor, inFlightFloor(most, func() time.Duration { return time.Since(start) }), nil},
		{bbrLimit, ours, ourGate(adaptive.BBR(adaptive.WithSignal(calm())), limits), nil},
		{defaultLimit, ours, ourGate(adaptive.Default(), limits), nil},
		{"sluice RunQueue", ours, ourGate(adaptive.RunQueue(), limits), nil},
		{"sluice Gradient2", ours, ourGate(adaptive.Gradient2(limits)), nil},
		{"failsafe-go adaptive limiter", peer, func(keep bool) bool {
			p, ok := lim.TryAcquirePermit()
			if ok && !keep {
				p.Record()
			}
			return ok
		}, nil},
		{"kratos aegis BBR", peer, func(keep bool) bool {
			done, err := aegis.Allow()
			if err == nil && !keep {
				done(ratelimit.DoneInfo{})
			}
			return err == nil
		}, nil},
		zeroGate(threshold),
	}
}

// calm is the signal that BBR watches by default, with a threshold that it does
// not reach.
func calm() adaptive.Signal { return adaptive.CPU(adaptive.Threshold(1e6)) }

// zeroGate is go-zero's shedder. It goes by a mean of the requests in flight, which
// it takes at the end of calls: so it is filled by 1000, of which half end.
func zeroGate(threshold int64) gate {
	shedder := load.NewAdaptiveShedder(load.WithCpuThreshold(threshold))
	return gate{"go-zero adaptive shedder", peer, func(keep bool) bool {
		p, err := shedder.Allow()
		if err == nil && !keep {
			p.Pass()
		}
		return err == nil
	}, func() {
		var held []load.Promise
		for range 1000 {
			if p, err := shedder.Allow(); err == nil {
				held = append(held, p)
			}
		}
		for _, p := range held[:len(held)/2] {
			p.Fail()
		}
	}}
}
