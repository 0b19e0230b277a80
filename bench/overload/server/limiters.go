package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/hints"
	"github.com/zeromicro/go-zero/core/load"
)

func split(s string) []string { return strings.Split(s, "+") }

// ours makes a limiter of this library.
func ours(name string) (algo.Limiter, error) {
	var s adaptive.Strategy
	switch name {
	case "default":
		s = adaptive.Default()
	case "runqueue":
		s = adaptive.RunQueue()
	case "bbr":
		s = adaptive.BBR()
	case "gradient2":
		s = adaptive.Gradient2()
	case "vegas":
		s = adaptive.Vegas()
	case "aimd":
		s = adaptive.AIMD()
	case "rejects": // all but one at a time, to measure the cost of a rejection
		return rejects{}, nil
	default:
		return nil, fmt.Errorf("the limiter is %q, want none, default, runqueue, bbr, gradient2, vegas, aimd, aegis, failsafe or gozero", name)
	}
	return adaptive.New(s, options()...)
}

// middleware limits a handler by the limiter of that name.
func middleware(name string) (func(http.Handler) http.Handler, algo.Limiter, error) {
	switch name {
	case "none":
		return func(h http.Handler) http.Handler { return h }, nil, nil
	case "aegis":
		return aegis(bbr.NewLimiter()), nil, nil
	case "failsafe":
		return failsafe(adaptivelimiter.NewWithDefaults[any]()), nil, nil
	case "gozero":
		load.DisableLog()
		return gozero(load.NewAdaptiveShedder()), nil, nil
	}
	l, err := ours(name)
	if err != nil {
		return nil, nil, err
	}
	limit := httpmw.Limit(l, httpTenant)
	if classes {
		trusted := hints.Priority(func(*http.Request) bool { return true })
		return func(h http.Handler) http.Handler { return trusted(limit(h)) }, l, nil
	}
	return limit, l, nil
}

func refuse(w http.ResponseWriter) { http.Error(w, "overloaded", http.StatusServiceUnavailable) }

func aegis(l ratelimit.Limiter) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			done, err := l.Allow()
			if err != nil {
				refuse(w)
				return
			}
			defer done(ratelimit.DoneInfo{})
			h.ServeHTTP(w, r)
		})
	}
}

func failsafe(l adaptivelimiter.AdaptiveLimiter[any]) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			permit, ok := l.TryAcquirePermit()
			if !ok {
				refuse(w)
				return
			}
			defer permit.Record()
			h.ServeHTTP(w, r)
		})
	}
}

func gozero(s load.Shedder) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p, err := s.Allow()
			if err != nil {
				refuse(w)
				return
			}
			defer p.Pass()
			h.ServeHTTP(w, r)
		})
	}
}
