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

// Semaphore is golang.org/x/sync/semaphore.
func Semaphore(n int) Gate {
	sem := semaphore.NewWeighted(int64(n))
	return counted(func() bool { return sem.TryAcquire(1) }, func() { sem.Release(1) })
}

// Bulkhead is failsafe-go's fixed limit.
func Bulkhead(n int) Gate {
	hull := bulkhead.New[any](uint(n))
	return counted(hull.TryAcquirePermit, hull.ReleasePermit)
}

func counted(take func() bool, release func()) Gate {
	return Gate{
		Enter: func() func(bool) {
			if !take() {
				return nil
			}
			return func(bool) { release() }
		},
		Once: func(keep bool) bool {
			ok := take()
			if ok && !keep {
				release()
			}
			return ok
		},
	}
}

// Failsafe is failsafe-go's adaptive limiter, fixed to n; 0: with its defaults.
func Failsafe(n int) Gate {
	lim := adaptivelimiter.NewWithDefaults[any]()
	if n > 0 {
		lim = adaptivelimiter.NewBuilder[any]().WithLimits(uint(n), uint(n), uint(n)).Build()
	}
	return Gate{
		Enter: func() func(bool) {
			permit, ok := lim.TryAcquirePermit()
			if !ok {
				return nil
			}
			return func(dropped bool) {
				if dropped {
					permit.Drop()
				} else {
					permit.Record()
				}
			}
		},
		Once: func(keep bool) bool {
			permit, ok := lim.TryAcquirePermit()
			if ok && !keep {
				permit.Record()
			}
			return ok
		},
	}
}

// Aegis is the BBR of go-kratos/aegis, with its options, such as [bbr.WithCPUThreshold].
func Aegis(opts ...bbr.Option) Gate {
	l := bbr.NewLimiter(opts...)
	return Gate{
		Enter: func() func(bool) {
			done, err := l.Allow()
			if err != nil {
				return nil
			}
			return func(bool) { done(ratelimit.DoneInfo{}) }
		},
		Once: func(keep bool) bool {
			done, err := l.Allow()
			if err == nil && !keep {
				done(ratelimit.DoneInfo{})
			}
			return err == nil
		},
	}
}

// GoZero is go-zero's adaptive shedder.
func GoZero(opts ...load.ShedderOption) Gate {
	load.DisableLog()
	shedder := load.NewAdaptiveShedder(opts...)
	return Gate{
		Enter: func() func(bool) {
			promise, err := shedder.Allow()
			if err != nil {
				return nil
			}
			return func(dropped bool) {
				if dropped {
					promise.Fail()
				} else {
					promise.Pass()
				}
			}
		},
		Once: func(keep bool) bool {
			promise, err := shedder.Allow()
			if err == nil && !keep {
				promise.Pass()
			}
			return err == nil
		},
	}
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
