package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/juju/ratelimit"
	"github.com/sluice-go/sluice/algo"
	"golang.org/x/time/rate"
)

const waiters = 100

// waitAttacks give up waits and give back charges.
func waitAttacks() []attack {
	return []attack{{
		id: "canceled-waits", title: "Waits that were given up are still waited for",
		does: "Limit 1 a second, 1 spent. 100 callers wait and give up, the first one first. How long does the next one wait? " +
			"(juju's Wait cannot be given up; its callers take their place with Take and leave.)",
		holds: "at most 2 s",
		tries: []try{
			{sluice, canceledSluice}, {"x/time/rate", canceledXTime},
			{"failsafe-go smooth rate limiter", canceledFailsafe}, {"juju", canceledJuju},
		},
	}, {
		id: "refund-twice", title: "A reservation that is given back twice mints",
		does:  "Limit 10 an hour, 10 spent. One more is reserved for later and given back 20 times; then 20 more are asked for. (juju, throttled, ulule and httprate have no reservation to give back.)",
		holds: "at most 10 of 30 are admitted",
		tries: []try{
			{sluice, func() outcome { return refunded(func(l *algo.Lease) { l.Release(algo.Canceled) }) }},
			{"sluice with copies of the lease, which its documentation forbids", func() outcome {
				return refunded(func(l *algo.Lease) { again := *l; again.Release(algo.Canceled) })
			}},
			{"x/time/rate", func() outcome {
				l := rate.NewLimiter(rate.Every(6*time.Minute), 10)
				got := count(10, l.Allow)
				r := l.Reserve()
				for range 20 {
					r.Cancel()
				}
				return atMost(10, got+count(20, l.Allow), 30)
			}},
		},
	}, {
		id: "refund-late", title: "A refund that comes too late mints",
		does:  "Limit 10 a second. 10 are spent; when they have been refilled, 10 more; then the first 10 are given back, and 10 more are asked for. (throttled and ulule give back by a negative cost.)",
		holds: "at most the units refilled meanwhile, and 1", together: true,
		tries: append([]try{
			{sluice, func() outcome {
				l := algo.Must(algo.NewTokenBucket(algo.PerSecond(10)))
				var leases []algo.Lease
				return late(func() bool {
					lease, err := l.Acquire(context.Background(), "k", 1)
					leases = append(leases, lease)
					return err == nil && lease.Allowed
				}, func() {
					for i := range leases[:10] {
						leases[i].Release(algo.Canceled)
					}
				})
			}},
			{"x/time/rate", func() outcome {
				l := rate.NewLimiter(10, 10)
				var rs []*rate.Reservation
				return late(func() bool {
					r := l.ReserveN(time.Now(), 1)
					rs = append(rs, r)
					if r.Delay() > 0 {
						r.Cancel()
						return false
					}
					return true
				}, func() {
					for _, r := range rs[:10] {
						r.Cancel()
					}
				})
			}},
		}, each(func(l library) bool { return l.name == "throttled" || l.name == "ulule" }, func(l library) outcome {
			take := l.limit(quota{10, refilled}, 1000)
			return late(func() bool { return take("k", 1) }, func() { take("k", -10) })
		})...),
	}}
}

// nextWaits is the outcome of a caller that has to wait for d.
func nextWaits(d time.Duration, err error) outcome {
	if err != nil {
		return outcome{err.Error(), false}
	}
	return outcome{fmt.Sprintf("the next one waits %.1f s", d.Seconds()), d <= 2*time.Second}
}

// giveUp starts the waits one after the other, each once queued says that the
// ones before are in line, and then cancels them in that order.
func giveUp(wait func(context.Context) error, queued func() int) error {
	var cancels []context.CancelFunc
	left := make(chan error)
	for i := range waiters {
		ctx, cancel := context.WithCancel(context.Background())
		cancels = append(cancels, cancel)
		go func() { left <- wait(ctx) }()
		for queued() <= i {
			runtime.Gosched()
		}
	}
	for _, cancel := range cancels {
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			return fmt.Errorf("a wait ended with %w", err)
		}
	}
	return nil
}

func canceledSluice() outcome {
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(1), algo.MaxWait(algo.Forever)))
	l.Allow("", 1)
	reset := func() time.Duration {
		lease, _ := l.Acquire(context.Background(), "", 0)
		return lease.ResetAfter
	}
	start := time.Now()
	err := giveUp(func(ctx context.Context) error {
		_, err := algo.Wait(ctx, l, "", 1)
		return err
	}, func() int { return int(math.Ceil((reset() + time.Since(start)).Seconds())) - 1 })
	lease, _ := l.Acquire(context.Background(), "", 1)
	return nextWaits(lease.Delay, err)
}

func canceledXTime() outcome {
	l := rate.NewLimiter(1, 1)
	l.Allow()
	start := time.Now()
	err := giveUp(l.Wait, func() int { return int(math.Round(time.Since(start).Seconds() - l.Tokens())) })
	return nextWaits(l.Reserve().Delay(), err)
}

// watched is a context that reports that a caller waits for its end.
type watched struct {
	context.Context
	begun func()
}

func (w watched) Done() <-chan struct{} {
	w.begun()
	return w.Context.Done()
}

func canceledFailsafe() outcome {
	l := ratelimiter.NewSmooth[any](1, time.Second)
	l.TryAcquirePermit()
	var waiting atomic.Int64
	err := giveUp(func(ctx context.Context) error {
		return l.AcquirePermit(watched{ctx, sync.OnceFunc(func() { waiting.Add(1) })})
	}, func() int { return int(waiting.Load()) })
	return nextWaits(l.ReservePermit(), err)
}

func canceledJuju() outcome {
	b := ratelimit.NewBucket(time.Second, 1)
	for range 1 + waiters {
		b.Take(1)
	}
	return nextWaits(b.Take(1), nil)
}

func refunded(giveBack func(*algo.Lease)) outcome {
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(10), algo.MaxWait(time.Hour)))
	allow := func() bool { return l.Allow("", 1) }
	got := count(10, allow)
	lease, _ := l.Acquire(context.Background(), "", 1)
	for range 20 {
		giveBack(&lease)
	}
	return atMost(10, got+count(20, allow), 30)
}

const refilled = time.Second

// late spends 10, waits until they are there again, spends 10, gives the first 10 back, and asks
// for 10 more.
func late(spend func() bool, giveBack func()) outcome {
	first := count(10, spend)
	time.Sleep(refilled + 100*time.Millisecond)
	start := time.Now()
	second := count(10, spend)
	giveBack()
	third := count(10, spend)
	o := atMost(1+int(10*time.Since(start)/refilled), third, 10)
	return outcome{o.figure + " after the refund", o.holds && first == 10 && second == 10}
}
