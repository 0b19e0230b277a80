package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivethrottler"
	"github.com/go-kratos/aegis/circuitbreaker/sre"
	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/throttle"
	"github.com/sluice-go/sluice/algo"
	"github.com/zeromicro/go-zero/core/breaker"
	"github.com/zeromicro/go-zero/core/collection"
)

const throttleOurs = "sluice Throttle"

// throttles decide on the client's side whether a call is worth making, by the
// formula of Google's book on reliability, in front of a backend that accepts
// everything.
func throttles() []contender {
	var own algo.Limiter = algo.Must(throttle.New())
	safe := adaptivethrottler.NewWithDefaults[any]()
	kratos := sre.NewBreaker()
	zero := breaker.NewBreaker()
	ctx := context.Background()
	return []contender{
		{"floor: clock, two additions", floor, again(addFloor())},
		{throttleOurs, ours, again(func() bool {
			lease, err := own.Acquire(ctx, "", 1)
			lease.Release(algo.Succeeded)
			return err == nil && lease.Allowed
		})},
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
			if err != nil {
				return false
			}
			p.Accept()
			return true
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

const windowOurs = "sluice Window.Add"

// windows count completed work into a rolling window of 10 s in 100 buckets.
// The window of aegis is not exported.
func windows() []contender {
	w := must(adaptive.NewWindow(10*time.Second, 100))
	zero := collection.NewRollingWindow(func() *collection.Bucket[int64] {
		return new(collection.Bucket[int64])
	}, 100, 100*time.Millisecond)
	return []contender{
		{"floor: clock, two additions", floor, again(addFloor())},
		{windowOurs, ours, again(func() bool { w.Add(time.Millisecond); return true })},
		{"go-zero RollingWindow.Add", peer, again(func() bool { zero.Add(1); return true })},
	}
}
