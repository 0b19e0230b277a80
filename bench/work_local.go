package main

import (
	"context"
	"hash/maphash"
	"math"
	"sync/atomic"
	"time"

	"github.com/RussellLuo/slidingwindow"
	"github.com/juju/ratelimit"
	"github.com/sluice-go/sluice/algo"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

const (
	fast = 1_000_000_000 // a second: one unit takes no longer than a decision
	huge = 1 << 40       // units: more than a run can spend

	oursAllow   = "sluice Allow"
	oursAcquire = "sluice Acquire and Release"
)

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

// acquired goes through the interface, as an adapter does.
func acquired(l algo.Limiter) func() bool {
	ctx := context.Background()
	return func() bool {
		lease, err := l.Acquire(ctx, "", 1)
		ok := err == nil && lease.Allowed
		lease.Release(algo.Succeeded)
		return ok
	}
}

// acquiring is the same for every key.
func acquiring(l algo.Limiter) ask {
	ctx := context.Background()
	return func(key string, n int) bool {
		lease, err := l.Acquire(ctx, key, int64(n))
		ok := err == nil && lease.Allowed
		lease.Release(algo.Succeeded)
		return ok
	}
}

// clockFloor reads the clock once and swaps one word.
func clockFloor() func() bool {
	start := time.Now()
	var word atomic.Int64
	return func() bool {
		now := int64(time.Since(start))
		for !word.CompareAndSwap(word.Load(), now) {
		}
		return true
	}
}

// oneBucket is one bucket without keys from which everything is admitted.
func oneBucket() []contender {
	bucket := algo.Must(algo.NewTokenBucket(algo.PerSecond(fast), algo.Burst(huge)))
	pacer := uber.New(fast, uber.WithSlack(math.MaxInt32))
	juju := ratelimit.NewBucket(time.Nanosecond, huge)
	return []contender{
		{"floor: clock, swap", floor, again(clockFloor())},
		{oursAllow, ours, again(func() bool { return bucket.Allow("", 1) })},
		{oursAcquire, ours, again(acquired(bucket))},
		{"x/time/rate Allow", peer, again(rate.NewLimiter(fast, huge).Allow)},
		{"uber Take", peer, again(func() bool { pacer.Take(); return true })},
		{"juju TakeAvailable", peer, again(func() bool { return juju.TakeAvailable(1) == 1 })},
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
		{"floor: clock, load", floor, again(func() bool { return word.Load() <= int64(time.Since(start)) })},
		{oursAllow, ours, again(func() bool { return bucket.Allow("", 1) })},
		{oursAcquire, ours, again(acquired(bucket))},
		{"x/time/rate Allow", peer, again(xtime.Allow)},
		{"juju TakeAvailable", peer, again(func() bool { return juju.TakeAvailable(1) == 1 })},
	}
}

// slidingWindows are windows of an hour of two counters, from which everything
// is admitted.
func slidingWindows() []contender {
	window := algo.Must(algo.NewSlidingWindow(algo.PerHour(huge)))
	theirs, _ := slidingwindow.NewLimiter(time.Hour, huge, localWindow)
	return []contender{
		{"floor: clock, swap", floor, again(clockFloor())},
		{oursAllow, ours, again(func() bool { return window.Allow("", 1) })},
		{oursAcquire, ours, again(acquired(window))},
		{"RussellLuo slidingwindow", peer, again(theirs.Allow)},
	}
}

// keyed is one limiter for all of ks, each of which has been charged before and
// has debt for longer than the run takes. Everything is admitted.
func keyed(ks []string) (cs []contender) {
	// Every key has a debt of over an hour.
	table := algo.Must(algo.NewTokenBucket(algo.PerSecond(fast), algo.Burst(1<<53), algo.MaxKeys(len(ks))))
	for _, k := range ks {
		table.Allow(k, 1<<42)
	}
	cs = []contender{
		{"floor: clock, hash, swap", floor, inTurn(ks, keyedFloor(ks))},
		{oursAllow, ours, inTurn(ks, func(k string, n int) bool { return table.Allow(k, int64(n)) })},
		{oursAcquire, ours, inTurn(ks, acquiring(table))},
	}
	for _, l := range those(hasKeys) {
		switch l.name {
		case "go-limiter", "throttled", "ulule", "sync.Map of x/time/rate":
			cs = append(cs, contender{l.name, peer, inTurn(ks, l.limit(plenty, len(ks)))})
		}
	}
	for _, c := range cs {
		c.run(len(ks)) // so that each has seen every key
	}
	return cs
}

// inTurn asks for the keys in turn. Goroutines begin far from each other. Every
// contender, the floor too, pays for the call of admitted.
func inTurn(ks []string, admitted ask) func(int) int {
	var begin atomic.Int64
	return func(n int) (count int) {
		i := int(begin.Add(1)*1_000_003) % len(ks)
		for range n {
			if admitted(ks[i], 1) {
				count++
			}
			if i++; i == len(ks) {
				i = 0
			}
		}
		return count
	}
}

// keyedFloor reads the clock, hashes the key and swaps one word of a table of
// the size that sluice would make. It does not check whose word it is.
func keyedFloor(ks []string) ask {
	type slot struct{ word, _ atomic.Int64 }
	slots := make([]slot, 2*len(ks))
	seed := maphash.MakeSeed()
	start := time.Now()
	return func(k string, _ int) bool {
		now := int64(time.Since(start))
		s := &slots[maphash.String(seed, k)&uint64(len(slots)-1)]
		for !s.word.CompareAndSwap(s.word.Load(), now) {
		}
		return true
	}
}
