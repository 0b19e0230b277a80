package main

import (
	"fmt"
	"net/http"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// panickingHandlers loses requests on the way, as net/http lets them.
func panickingHandlers() attack {
	return attack{id: "panics", title: "Handlers that panic keep their slot for ever",
		does:  "At most 10 requests in flight. 100 handlers panic, as http.ErrAbortHandler does; then 10 requests are served one after the other.",
		holds: "all 10 are admitted",
		tries: []try{
			{sluice, func() outcome {
				l := must(adaptive.New(adaptive.Fixed(10)))
				defer l.Close()
				return afterPanics(httpmw.Limit(l, keyfunc.Global()))
			}},
			{"failsafe-go bulkhead", func() outcome {
				return afterPanics(func(h http.Handler) http.Handler {
					return failsafehttp.NewHandler(h, bulkhead.New[*http.Response](10))
				})
			}},
		}}
}

// afterPanics counts who is still served.
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
