package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// slots is an in-flight limiter of one bucket: what a lease has to free.
type slots struct{ free atomic.Int64 }

func newSlots(n int64) *slots {
	s := new(slots)
	s.free.Store(n)
	return s
}

// Acquire takes n slots, or denies for overload.
func (s *slots) Acquire(_ context.Context, key string, n int64) (algo.Lease, error) {
	if s.free.Add(-n) < 0 {
		s.free.Add(n)
		return algo.NewLease(algo.Decision{Reason: algo.Overload}, nil, algo.Handle{}), nil
	}
	return algo.NewLease(algo.Decision{Allowed: true}, s, algo.Handle{Key: key, N: n}), nil
}

// Release gives the slots of an admission back.
func (s *slots) Release(h algo.Handle, _ algo.Outcome) { s.free.Add(h.N) }

// Settle does nothing: a slot is a slot.
func (s *slots) Settle(algo.Handle, int64) {}

// panickingHandlers loses requests on the way, as net/http lets them.
func panickingHandlers() attack {
	behind := func(wrap func(http.Handler) http.Handler) func() outcome {
		return func() outcome {
			serve := handled(func(h http.Handler) http.Handler {
				return wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("X-Panic") != "" {
						panic(http.ErrAbortHandler)
					}
					h.ServeHTTP(w, r)
				}))
			})
			for range 100 {
				guarded(func() outcome {
					serve(func(r *http.Request) *http.Request { r.Header.Set("X-Panic", "1"); return r })
					return outcome{}
				})
			}
			got := count(10, func() bool { return serve(nil) == http.StatusOK })
			return outcome{fmt.Sprintf("%d of 10 admitted afterwards", got), got == 10}
		}
	}
	return attack{id: "panics", title: "Handlers that panic keep their slot for ever",
		does:  "At most 10 requests in flight. 100 handlers panic, as http.ErrAbortHandler does; then 10 requests are served one after the other. (sluice: httpmw over the simplest limiter that has slots.)",
		holds: "all 10 are admitted",
		tries: []try{
			{sluice, behind(httpmw.Limit(newSlots(10), keyfunc.ClientIP()))},
			{"failsafe-go bulkhead", behind(func(h http.Handler) http.Handler {
				return failsafehttp.NewHandler(h, bulkhead.New[*http.Response](10))
			})},
		}}
}
