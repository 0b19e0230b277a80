package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivethrottler"
	"github.com/go-kratos/aegis/circuitbreaker/sre"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/adaptive/throttle"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/bench/peers"
	"github.com/zeromicro/go-zero/core/breaker"
	"github.com/zeromicro/go-zero/core/load"
)

const (
	fixedLimit   = "sluice Fixed"
	bbrLimit     = "sluice BBR"
	defaultLimit = "sluice Default"
	throttleOurs = "sluice Throttle"
)

// gate is an in-flight limit. Once asks for a slot and, unless it is to keep
// it, gives it back.
type gate struct {
	name string
	kind kind
	once func(keep bool) (admitted bool)
	fill func() // nil: keep slots until there are none
}

// asked makes contenders of gates.
func asked(gates []gate) (cs []contender) {
	for _, g := range gates {
		cs = append(cs, contender{g.name, g.kind, again(func() bool { return g.once(false) })})
	}
	return cs
}

// full makes contenders of gates that have no slot left.
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

// fixedGates are limits of n. The floor swaps a word and swaps it back.
func fixedGates(n int) []gate {
	return []gate{
		{"floor: swap, swap", floor, inFlightFloor(n, func() time.Duration { return 0 }), nil},
		{fixedLimit, ours, ourGate(adaptive.Fixed(n)), nil},
		{"x/sync semaphore", peer, peers.Semaphore(n).Once, nil},
		{"failsafe-go bulkhead", peer, peers.Bulkhead(n).Once, nil},
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
// slots, their signal always reports overload, or their limit is at most one.
func adaptiveGates(free bool) []gate {
	most, threshold := 1, int64(0) // of 1000 shares of the processor
	if free {
		most, threshold = 1000, 1001
	}
	start := time.Now()
	limits := adaptive.WithLimits(most, most)
	calm := strategy.WithSignal(signal.CPU(signal.Threshold(1e6))) // which it does not reach
	zero := peers.GoZero(load.WithCpuThreshold(threshold))
	return []gate{
		{"floor: clock, swap, clock, swap", floor, inFlightFloor(most, func() time.Duration { return time.Since(start) }), nil},
		{bbrLimit, ours, ourGate(strategy.BBR(calm), limits), nil},
		{defaultLimit, ours, ourGate(adaptive.Default(), limits), nil},
		{"sluice RunQueue", ours, ourGate(adaptive.RunQueue(), limits), nil},
		{"sluice Gradient2", ours, ourGate(strategy.Gradient2(limits)), nil},
		{"failsafe-go adaptive limiter", peer, peers.Failsafe(most).Once, nil},
		{"kratos aegis BBR", peer, peers.Aegis(bbr.WithCPUThreshold(threshold)).Once, nil},
		{"go-zero adaptive shedder", peer, zero.Once, func() { fillZero(zero) }},
	}
}

// fillZero overloads go-zero's shedder. It goes by a mean of the requests in flight, which
// it takes at the end of calls: so it is filled by 1000, of which half fail.
func fillZero(g peers.Gate) {
	var held []func(bool)
	for range 1000 {
		if leave := g.Enter(); leave != nil {
			held = append(held, leave)
		}
	}
	for _, leave := range held[:len(held)/2] {
		leave(true)
	}
}

// throttles decide on the client's side whether a call is worth making, by the
// formula of Google's book on reliability, in front of a backend that accepts
// everything.
func throttles() []contender {
	safe := adaptivethrottler.NewWithDefaults[any]()
	kratos, zero := sre.NewBreaker(), breaker.NewBreaker()
	return []contender{
		{"floor: clock, two additions", floor, again(addFloor())},
		{throttleOurs, ours, again(acquired(algo.Must(throttle.New())))},
		{"failsafe-go adaptive throttler", peer, again(func() bool {
			ok := safe.TryAcquirePermit()
			safe.RecordSuccess()
			return ok
		})},
		{"kratos aegis SRE breaker", peer, again(func() bool {
			err := kratos.Allow()
			kratos.MarkSuccess()
			return err == nil
		})},
		{"go-zero breaker", peer, again(func() bool {
			p, err := zero.Allow()
			if err == nil {
				p.Accept()
			}
			return err == nil
		})},
	}
}

// addFloor reads the clock and adds to two sums.
func addFloor() func() bool {
	start := time.Now()
	var n, sum atomic.Int64
	return func() bool {
		n.Add(1)
		return sum.Add(int64(time.Since(start))) != 0
	}
}
