package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/juju/ratelimit"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/interleave"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"golang.org/x/time/rate"
)

// staleReadings gives limiters readings of the clock that go back. This happens
// when a goroutine reads the clock and is then preempted, while others decide.
func staleReadings() attack {
	return attack{id: "stale-clock", title: "The clock goes back",
		does: "Limit 1000 a second, burst 10. 500 callers read the clock and are held up for 50 ms; then they decide in turn with 500 that have just read it. " +
			"(sluice takes no instant: its callers are held up inside, between the reading and the decision. throttled and juju are handed a clock that alternates.)",
		holds: "at most 10 + 1000/s * the time it took",
		tries: []try{
			{sluice, staleSluice},
			{"x/time/rate", staleXTime},
			{"juju", staleJuju},
			{"throttled", staleThrottled},
		}}
}

const (
	staleCallers = 500
	staleGap     = 50 * time.Millisecond
	staleRate    = 1000
	staleBurst   = 10
)

// bounded compares the admissions with the bound of a token bucket.
func bounded(got int, took time.Duration) outcome {
	most := staleBurst + int(took.Seconds()*staleRate)
	return outcome{fmt.Sprintf("%d of %d admitted in %d ms, bound %d", got, 2*staleCallers, took.Milliseconds(), most), got <= most}
}

// staleSluice holds 500 calls between reading the clock and the swap. When they
// go on, the word has changed, so each decides anew with its old reading.
func staleSluice() outcome {
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(staleRate), algo.Burst(staleBurst)))
	start := time.Now()
	var held atomic.Int64
	proceed := make(chan struct{})
	answers := make(chan bool)
	var allHeld sync.WaitGroup
	allHeld.Add(staleCallers)
	interleave.Hook = func() {
		if held.Add(1) <= staleCallers {
			allHeld.Done()
			<-proceed
		}
	}
	defer func() { interleave.Hook = nil }()
	for range staleCallers {
		go func() { answers <- l.Allow("", 1) }()
	}
	allHeld.Wait()
	time.Sleep(staleGap)
	got := 0
	for range staleCallers {
		got += count(1, func() bool { return l.Allow("", 1) })
		proceed <- struct{}{}
		got += count(1, func() bool { return <-answers })
	}
	return bounded(got, time.Since(start))
}

// alternating decides in turn with fresh readings and with old ones.
func alternating(start time.Time, decide func(at time.Time) bool) outcome {
	old := time.Now()
	time.Sleep(staleGap)
	got := 0
	for range staleCallers {
		got += count(1, func() bool { return decide(time.Now()) })
		got += count(1, func() bool { return decide(old) })
	}
	return bounded(got, time.Since(start))
}

func staleXTime() outcome {
	start := time.Now()
	l := rate.NewLimiter(staleRate, staleBurst)
	return alternating(start, func(at time.Time) bool { return l.AllowN(at, 1) })
}

// handedClock is a clock that is set by hand.
type handedClock struct{ at time.Time }

func (c *handedClock) Now() time.Time      { return c.at }
func (c *handedClock) Sleep(time.Duration) {}

func staleJuju() outcome {
	start := time.Now()
	c := &handedClock{start}
	b := ratelimit.NewBucketWithClock(time.Second/staleRate, staleBurst, c)
	return alternating(start, func(at time.Time) bool {
		c.at = at
		return b.TakeAvailable(1) == 1
	})
}

func staleThrottled() outcome {
	start := time.Now()
	c := &handedClock{start}
	store := must(memstore.New(0))
	store.SetTimeNow(c.Now)
	l := must(throttled.NewGCRARateLimiterCtx(throttled.WrapStoreWithContext(store),
		throttled.RateQuota{MaxRate: throttled.PerSec(staleRate), MaxBurst: staleBurst - 1}))
	return alternating(start, func(at time.Time) bool {
		c.at = at
		limited, _, err := l.RateLimitCtx(context.Background(), "k", 1)
		return err == nil && !limited
	})
}
