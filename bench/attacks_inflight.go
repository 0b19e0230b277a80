package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	kratoslimit "github.com/go-kratos/kratos/v2/middleware/ratelimit"
	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/bench/peers"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

const slots = 10

// inFlightAttacks attack limits on requests in flight.
func inFlightAttacks() []attack {
	return []attack{{
		id: "panics", title: "Handlers that panic keep their slot for ever",
		does: "At most 10 requests in flight. 100 handlers panic, as http.ErrAbortHandler does; then 10 requests are served one after the other. " +
			"(kratos gets the signal of an overloaded processor; without a leak it then serves any number one after the other.)",
		holds: "all 10 are admitted",
		tries: []try{
			{sluice, func() outcome {
				return afterPanics(httpmw.Limit(algo.Must(adaptive.New(adaptive.Fixed(slots))), keyfunc.Global()))
			}},
			{"failsafe-go bulkhead", func() outcome {
				return afterPanics(func(h http.Handler) http.Handler {
					return failsafehttp.NewHandler(h, bulkhead.New[*http.Response](slots))
				})
			}},
			{"failsafe-go adaptive limiter", func() outcome {
				l := adaptivelimiter.NewBuilder[*http.Response]().WithLimits(slots, slots, slots).Build()
				return afterPanics(func(h http.Handler) http.Handler { return failsafehttp.NewHandler(h, l) })
			}},
			{"kratos ratelimit middleware", func() outcome { return afterPanics(behindKratos) }},
		},
	}, {
		id: "release-twice", title: "A slot that is released twice admits another request",
		does: "At most 10 in flight, and 10 are. One of them ends and gives its place back five times; then 10 more ask. " +
			"(kratos aegis gets the signal of an overloaded processor, and then admits 2.)",
		holds: "1 of them is admitted",
		tries: []try{
			{sluice, func() outcome {
				return givenBack(ourSlots(func(l *algo.Lease) { l.Release(algo.Succeeded) }))
			}},
			{"sluice with copies of the lease, which its documentation forbids", func() outcome {
				return givenBack(ourSlots(func(l *algo.Lease) { again := *l; again.Release(algo.Succeeded) }))
			}},
			{"x/sync semaphore", func() outcome { return givenBack(peers.Semaphore(slots).Enter) }},
			{"failsafe-go bulkhead", func() outcome { return givenBack(peers.Bulkhead(slots).Enter) }},
			{"failsafe-go adaptive limiter", func() outcome { return givenBack(peers.Failsafe(slots).Enter) }},
			{"kratos aegis", func() outcome { return givenBack(peers.Aegis(bbr.WithCPUThreshold(0)).Enter) }},
		},
	}, {
		id: "class", title: "A class from the request is out of range",
		does: "An in-flight limit with priorities, which is reached. Requests come with the class 255, and with the levels 100000 and -5 where there are levels; " +
			"then a place is given back, and an ordinary request asks.",
		holds: "nothing panics, and the ordinary one is admitted",
		tries: []try{{sluice, ourClasses}, {"failsafe-go priority limiter", failsafeLevels}},
	}}
}

// behindKratos is a handler behind the middleware of kratos, with its BBR.
func behindKratos(h http.Handler) http.Handler {
	limit := kratoslimit.Server(kratoslimit.WithLimiter(bbr.NewLimiter(bbr.WithCPUThreshold(0))))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := limit(func(context.Context, any) (any, error) {
			h.ServeHTTP(w, r)
			return nil, nil
		})(r.Context(), nil)
		if err != nil {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
}

// afterPanics counts the requests that are still served.
func afterPanics(wrap wrap) outcome {
	serve := handled(func(http.Handler) http.Handler {
		return wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/panic" {
				panic(http.ErrAbortHandler)
			}
		}))
	})
	for range 100 {
		guarded(func() outcome {
			serve(func(r *http.Request) *http.Request { r.URL.Path = "/panic"; return r })
			return outcome{}
		})
	}
	got := count(10, func() bool { return serve(nil) == http.StatusOK })
	return outcome{fmt.Sprintf("%d of 10 admitted afterwards", got), got == 10}
}

// ourSlots are those of a limiter of 10.
func ourSlots(release func(*algo.Lease)) func() func(bool) {
	l := algo.Must(adaptive.New(adaptive.Fixed(slots)))
	return func() func(bool) {
		lease, err := l.Acquire(context.Background(), "", 1)
		if err != nil || !lease.Allowed {
			return nil
		}
		return func(bool) { release(&lease) }
	}
}

// givenBack counts the admissions after one slot was given back five times.
func givenBack(enter func() func(bool)) outcome {
	first := enter()
	for enter() != nil {
	}
	for range 5 {
		first(false)
	}
	got := count(10, func() bool { return enter() != nil })
	return outcome{fmt.Sprintf("%d of 10 admitted", got), got == 1}
}

// ourClasses states a class that there is not.
func ourClasses() outcome {
	ctx := context.Background()
	l := algo.Must(adaptive.New(adaptive.Default(), adaptive.WithLimits(1, 1), adaptive.WithPriorities()))
	held, _ := l.Acquire(ctx, "k", 1)
	for range 10 {
		lease, _ := l.Acquire(adaptive.WithClass(ctx, 255), "k", 1)
		lease.Release(algo.Succeeded)
	}
	held.Release(algo.Succeeded)
	lease, err := l.Acquire(adaptive.WithClass(ctx, adaptive.Critical), "k", 1)
	return served(err == nil && lease.Allowed)
}

func failsafeLevels() outcome {
	ctx := context.Background()
	l := adaptivelimiter.NewBuilder[any]().WithLimits(1, 1, 1).WithQueueing(2, 3).BuildPrioritized(adaptivelimiter.NewPrioritizer())
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
}

func served(ok bool) outcome {
	return outcome{"the ordinary one is " + map[bool]string{true: "admitted", false: "denied"}[ok], ok}
}
