// Package peers has the in-flight limits of other libraries behind one face.
package peers

import (
	"net/http"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	"github.com/zeromicro/go-zero/core/load"
	"golang.org/x/sync/semaphore"
)

// Gate is a limit on requests in flight.
type Gate struct {
	// Enter takes a slot and returns its release, nil after a denial. A dropped request is no
	// measurement, where the library can express that.
	Enter func() (leave func(dropped bool))
	// Once takes a slot at the library's own price, and releases it unless keep is set.
	Once func(keep bool) bool
}

// gate makes a Gate of a library's functions: take returns a slot, and whether there was one.
func gate[S any](take func() (S, bool), release func(slot S, dropped bool)) Gate {
	return Gate{
		Enter: func() func(bool) {
			slot, ok := take()
			if !ok {
				return nil
			}
			return func(dropped bool) { release(slot, dropped) }
		},
		Once: func(keep bool) bool {
			slot, ok := take()
			if ok && !keep {
				release(slot, false)
			}
			return ok
		},
	}
}

// none is the slot of a library that only counts.
type none = struct{}

// Semaphore is golang.org/x/sync/semaphore.
func Semaphore(n int) Gate {
	sem := semaphore.NewWeighted(int64(n))
	return gate(func() (none, bool) { return none{}, sem.TryAcquire(1) }, func(none, bool) { sem.Release(1) })
}

// Bulkhead is failsafe-go's fixed limit.
func Bulkhead(n int) Gate {
	hull := bulkhead.New[any](uint(n))
	return gate(func() (none, bool) { return none{}, hull.TryAcquirePermit() }, func(none, bool) { hull.ReleasePermit() })
}

// Failsafe is failsafe-go's adaptive limiter, fixed to n; 0: with its defaults.
func Failsafe(n int) Gate {
	lim := adaptivelimiter.NewWithDefaults[any]()
	if n > 0 {
		lim = adaptivelimiter.NewBuilder[any]().WithLimits(uint(n), uint(n), uint(n)).Build()
	}
	return gate(lim.TryAcquirePermit, func(permit adaptivelimiter.Permit, dropped bool) {
		if dropped {
			permit.Drop()
		} else {
			permit.Record()
		}
	})
}

// Aegis is the BBR of go-kratos/aegis, with its options, such as [bbr.WithCPUThreshold].
func Aegis(opts ...bbr.Option) Gate {
	l := bbr.NewLimiter(opts...)
	return gate(func() (ratelimit.DoneFunc, bool) {
		done, err := l.Allow()
		return done, err == nil
	}, func(done ratelimit.DoneFunc, _ bool) { done(ratelimit.DoneInfo{}) })
}

// GoZero is go-zero's adaptive shedder.
func GoZero(opts ...load.ShedderOption) Gate {
	load.DisableLog()
	shedder := load.NewAdaptiveShedder(opts...)
	return gate(func() (load.Promise, bool) {
		promise, err := shedder.Allow()
		return promise, err == nil
	}, func(promise load.Promise, dropped bool) {
		if dropped {
			promise.Fail()
		} else {
			promise.Pass()
		}
	})
}

// Wrap limits a handler.
func (g Gate) Wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave := g.Enter()
		if leave == nil {
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
			return
		}
		defer leave(false)
		h.ServeHTTP(w, r)
	})
}
