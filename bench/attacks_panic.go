package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	kratoslimit "github.com/go-kratos/kratos/v2/middleware/ratelimit"
	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// panickingHandlers loses requests on the way, as net/http lets them.
func panickingHandlers() attack {
	return attack{id: "panics", inFlight: true, title: "Handlers that panic keep their slot for ever",
		does: "At most 10 requests in flight. 100 handlers panic, as http.ErrAbortHandler does; then 10 requests are served one after the other. " +
			"(kratos gets the signal of an overloaded processor; without a leak it then serves any number one after the other.)",
		holds: "all 10 are admitted",
		tries: []try{
			{sluice, func() outcome {
				l := must(adaptive.New(adaptive.Fixed(10)))
				return afterPanics(httpmw.Limit(l, keyfunc.Global()))
			}},
			{"failsafe-go bulkhead", func() outcome {
				return afterPanics(func(h http.Handler) http.Handler {
					return failsafehttp.NewHandler(h, bulkhead.New[*http.Response](10))
				})
			}},
			{"failsafe-go adaptive limiter", func() outcome {
				l := adaptivelimiter.NewBuilder[*http.Response]().WithLimits(10, 10, 10).Build()
				return afterPanics(func(h http.Handler) http.Handler { return failsafehttp.NewHandler(h, l) })
			}},
			{"kratos ratelimit middleware", func() outcome { return afterPanics(behindKratos) }},
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
func afterPanics(wrap func(http.Handler) http.Handler) outcome {
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
