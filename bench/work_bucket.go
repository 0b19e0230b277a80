package main

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/juju/ratelimit"
	"github.com/sluice-go/sluice/algo"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

const (
	fast = 1_000_000_000 // a second: one unit takes no longer than a decision
	huge = 1 << 40       // units: more than a run can spend
)

// clockFloor reads the clock once and swaps one word.
func clockFloor() func(int) int {
	start := time.Now()
	var word atomic.Int64
	return func(n int) (admitted int) {
		for range n {
			now := int64(time.Since(start))
			for !word.CompareAndSwap(word.Load(), now) {
			}
			admitted++
		}
		return admitted
	}
}

// oneBucket is one bucket without keys from which everything is admitted.
func oneBucket() []contender {
	bucket := algo.Must(algo.NewTokenBucket(algo.PerSecond(fast), algo.Burst(huge)))
	xtime := rate.NewLimiter(fast, huge)
	pacer := uber.New(fast, uber.WithSlack(math.MaxInt32))
	juju := ratelimit.NewBucket(time.Nanosecond, huge)
	return []contender{
		{"floor: clock, swap", floor, clockFloor()},
		{"sluice Allow", ours, allow(bucket)},
		{"sluice Acquire and Release", ours, acquire(bucket)},
		{"x/time/rate Allow", peer, xtimeAllow(xtime)},
		{"uber Take", peer, func(n int) int {
			for range n {
				pacer.Take()
			}
			return n
		}},
		{"juju TakeAvailable", peer, jujuTake(juju)},
	}
}

// oneEmptyBucket is one bucket without keys from which nothing is admitted.
// uber is not here: it denies nothing, it sleeps.
func oneEmptyBucket() []contender {
	bucket := algo.Must(algo.NewTokenBucket(algo.PerDay(1)))
	xtime := rate.NewLimiter(rate.Every(24*time.Hour), 1)
	juju := ratelimit.NewBucket(24*time.Hour, 1)
	bucket.Allow("", 1)
	xtime.Allow()
	juju.TakeAvailable(1)
	start := time.Now()
	var word atomic.Int64
	word.Store(math.MaxInt64)
	return []contender{
		{"floor: clock, load", floor, func(n int) (admitted int) {
			for range n {
				if word.Load() <= int64(time.Since(start)) {
					admitted++
				}
			}
			return admitted
		}},
		{"sluice Allow", ours, allow(bucket)},
		{"sluice Acquire and Release", ours, acquire(bucket)},
		{"x/time/rate Allow", peer, xtimeAllow(xtime)},
		{"juju TakeAvailable", peer, jujuTake(juju)},
	}
}

func allow(l *algo.TokenBucket) func(int) int {
	return func(n int) (admitted int) {
		for range n {
			if l.Allow("", 1) {
				admitted++
			}
		}
		return admitted
	}
}

// acquire goes through the interface, as an adapter does.
func acquire(l algo.Limiter) func(int) int {
	ctx := context.Background()
	return func(n int) (admitted int) {
		for range n {
			lease, err := l.Acquire(ctx, "", 1)
			if err == nil && lease.Allowed {
				admitted++
			}
			lease.Release(algo.Succeeded)
		}
		return admitted
	}
}

func xtimeAllow(l *rate.Limiter) func(int) int {
	return func(n int) (admitted int) {
		for range n {
			if l.Allow() {
				admitted++
			}
		}
		return admitted
	}
}

func jujuTake(b *ratelimit.Bucket) func(int) int {
	return func(n int) (admitted int) {
		for range n {
			admitted += int(b.TakeAvailable(1))
		}
		return admitted
	}
}
