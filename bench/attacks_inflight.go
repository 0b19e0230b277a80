package main

import (
	"context"
	"fmt"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"golang.org/x/sync/semaphore"
)

const places = 10

// place is one that was taken; calling it gives it back. It is nil if there was
// none.
type place func()

// releasedTwice gives one place back many times.
func releasedTwice() attack {
	return attack{id: "release-twice", inFlight: true, title: "A slot that is released twice admits another request",
		does: "At most 10 in flight, and 10 are. One of them ends and gives its place back five times; then 10 more ask. " +
			"(kratos aegis gets the signal of an overloaded processor, and then admits 2.)",
		holds: "1 of them is admitted",
		tries: []try{
			{sluice, func() outcome {
				return givenBack(ourPlaces(func(l *algo.Lease) place {
					return func() { l.Release(algo.Succeeded) }
				}))
			}},
			{"sluice with copies of the lease, which its documentation forbids", func() outcome {
				return givenBack(ourPlaces(func(l *algo.Lease) place {
					return func() { again := *l; again.Release(algo.Succeeded) }
				}))
			}},
			{"x/sync semaphore", func() outcome {
				sem := semaphore.NewWeighted(places)
				return givenBack(func() place {
					return when(sem.TryAcquire(1), func() { sem.Release(1) })
				})
			}},
			{"failsafe-go bulkhead", func() outcome {
				hull := bulkhead.New[any](places)
				return givenBack(func() place { return when(hull.TryAcquirePermit(), hull.ReleasePermit) })
			}},
			{"failsafe-go adaptive limiter", func() outcome {
				lim := adaptivelimiter.NewBuilder[any]().WithLimits(places, places, places).Build()
				return givenBack(func() place {
					p, ok := lim.TryAcquirePermit()
					return when(ok, func() { p.Record() })
				})
			}},
			{"kratos aegis", func() outcome {
				l := bbr.NewLimiter(bbr.WithCPUThreshold(0))
				return givenBack(func() place {
					done, err := l.Allow()
					return when(err == nil, func() { done(ratelimit.DoneInfo{}) })
				})
			}},
		}}
}

func when(ok bool, p place) place {
	if !ok {
		return nil
	}
	return p
}

// ourPlaces are the slots of a limiter of 10.
func ourPlaces(of func(*algo.Lease) place) func() place {
	l := must(adaptive.New(adaptive.Fixed(places)))
	return func() place {
		lease, err := l.Acquire(context.Background(), "", 1)
		return when(err == nil && lease.Allowed, of(&lease))
	}
}

// givenBack counts the admissions after one place was given back five times.
func givenBack(enter func() place) outcome {
	first := enter()
	for enter() != nil {
	}
	for range 5 {
		first()
	}
	got := count(10, func() bool { return enter() != nil })
	return outcome{fmt.Sprintf("%d of 10 admitted", got), got == 1}
}

// classOutOfRange states a class that there is not.
func classOutOfRange() attack {
	ctx := context.Background()
	return attack{id: "class", inFlight: true, title: "A class from the request is out of range",
		does: "An in-flight limit with priorities, which is reached. Requests come with the class 255, and with the levels 100000 and -5 where there are levels; " +
			"then a place is given back, and an ordinary request asks.",
		holds: "nothing panics, and the ordinary one is admitted",
		tries: []try{
			{sluice, func() outcome {
				l := must(adaptive.New(adaptive.Fixed(1), adaptive.WithPriorities()))
				held, _ := l.Acquire(ctx, "k", 1)
				for range 10 {
					lease, _ := l.Acquire(adaptive.WithClass(ctx, 255), "k", 1)
					lease.Release(algo.Succeeded)
				}
				held.Release(algo.Succeeded)
				lease, err := l.Acquire(adaptive.WithClass(ctx, adaptive.Critical), "k", 1)
				return served(err == nil && lease.Allowed)
			}},
			{"failsafe-go priority limiter", func() outcome {
				l := adaptivelimiter.NewBuilder[any]().WithLimits(1, 1, 1).WithQueueing(2, 3).
					BuildPrioritized(adaptivelimiter.NewPrioritizer())
				held, err := l.AcquirePermitWithLevel(ctx, 100)
				if err != nil {
					return outcome{err.Error(), false}
				}
				for _, level := range []int{-5, 100_000} {
					soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
					_, _ = l.AcquirePermitWithLevel(soon, level)
					cancel()
				}
				held.Record()
				_, err = l.AcquirePermitWithLevel(ctx, 100)
				return served(err == nil)
			}},
		}}
}

func served(ok bool) outcome {
	if !ok {
		return outcome{"the ordinary one is denied", false}
	}
	return outcome{"the ordinary one is admitted", true}
}
