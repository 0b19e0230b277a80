package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	tollbooth "github.com/didip/tollbooth/v7"
	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/throttled/throttled/v2"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

// handled serves one request at a time through a middleware and returns the
// status. The request is a GET of / from 192.0.2.1, changed by change.
func handled(wrap func(http.Handler) http.Handler) func(change func(*http.Request) *http.Request) int {
	h := responses(wrap)
	return func(change func(*http.Request) *http.Request) int { return h(change).Code }
}

// responses is like handled, for tries that also read the fields.
func responses(wrap func(http.Handler) http.Handler) func(change func(*http.Request) *http.Request) *httptest.ResponseRecorder {
	h := wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return func(change func(*http.Request) *http.Request) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		if change != nil {
			r = change(r)
		}
		h.ServeHTTP(w, r)
		return w
	}
}

// byAddress are the middlewares of 10 requests an hour and client, as they are
// set up with nothing said about proxies.
func byAddress() []middleware {
	return []middleware{
		{sluice, ours, sluiceBy(keyfunc.ClientIP())},
		{"httprate", peer, httprate.LimitBy(10, time.Hour, httprate.KeyByIP)},
		{"throttled", peer, (&throttled.HTTPRateLimiterCtx{RateLimiter: newThrottled(throttled.PerHour(10), 9, 0),
			VaryBy: &throttled.VaryBy{RemoteAddr: true}}).RateLimit},
		{"tollbooth", peer, boothBy(tollbooth.NewLimiter(10.0/3600, nil).SetBurst(10))},
		{"ulule", peer, ululeBy()},
		{"go-limiter", peer, golimiterBy(httplimit.IPKeyFunc())},
	}
}

// byForwarded are the same behind one proxy at 10.0.0.1, as the documentation
// of each says.
func byForwarded() []middleware {
	return []middleware{
		{sluice, ours, sluiceBy(keyfunc.ClientIP(netip.MustParsePrefix("10.0.0.0/8")))},
		{"httprate KeyByRealIP (deprecated)", peer, httprate.LimitBy(10, time.Hour, httprate.KeyByRealIP)},
		{"tollbooth", peer, boothBy(tollbooth.NewLimiter(10.0/3600, nil).SetBurst(10))},
		{"ulule WithTrustForwardHeader", peer, ululeBy(ulule.WithTrustForwardHeader(true))},
		{"go-limiter IPKeyFunc(X-Forwarded-For)", peer, golimiterBy(httplimit.IPKeyFunc("X-Forwarded-For"))},
	}
}

func sluiceBy(key keyfunc.HTTP) func(http.Handler) http.Handler {
	return httpmw.Limit(algo.Must(algo.NewTokenBucket(algo.PerHour(10))), key)
}

func ululeBy(opts ...ulule.Option) func(http.Handler) http.Handler {
	return stdlib.NewMiddleware(ulule.New(memory.NewStore(), ulule.Rate{Period: time.Hour, Limit: 10}, opts...)).Handler
}

func golimiterBy(key httplimit.KeyFunc) func(http.Handler) http.Handler {
	return must(httplimit.NewMiddleware(must(memorystore.New(
		&memorystore.Config{Tokens: 10, Interval: time.Hour})), key)).Handle
}

// disguised counts the admissions of one client that looks different each
// time.
func disguised(ms []middleware, change func(r *http.Request, i int)) (ts []try) {
	const n = 1000
	for _, m := range ms {
		ts = append(ts, try{m.name, func() outcome {
			serve, i := handled(m.wrap), 0
			got := count(n, func() bool {
				i++
				return serve(func(r *http.Request) *http.Request { change(r, i); return r }) == http.StatusOK
			})
			return atMost(10, got, n)
		}})
	}
	return ts
}

func forgedHeader() attack {
	return attack{id: "forged-header", title: "A client that is connected directly makes up X-Forwarded-For",
		does:  "Limit 10 an hour and client address, nothing said about proxies. One client sends 1000 requests from changing ports, each with another address in X-Forwarded-For.",
		holds: "at most 10 are admitted",
		tries: disguised(byAddress(), func(r *http.Request, i int) {
			r.RemoteAddr = fmt.Sprintf("203.0.113.9:%d", 1024+i)
			r.Header.Set("X-Forwarded-For", fmt.Sprintf("198.51.%d.%d", i>>8, i&255))
		})}
}

func forgedBehindProxy() attack {
	return attack{id: "left-most", title: "The left-most X-Forwarded-For is believed",
		does:  "The same behind one proxy, which appends the address of the client to the client's header. Each library in the mode that it offers for that (throttled has none).",
		holds: "at most 10 are admitted",
		tries: disguised(byForwarded(), func(r *http.Request, i int) {
			r.RemoteAddr = "10.0.0.1:443"
			r.Header.Set("X-Forwarded-For", fmt.Sprintf("198.51.%d.%d, 203.0.113.9", i>>8, i&255))
		})}
}

func rotatedIPv6() attack {
	return attack{id: "ipv6", title: "One IPv6 subscriber uses many addresses",
		does:  "Limit 10 an hour and client address. 1000 requests from different addresses of one /64.",
		holds: "at most 10 are admitted",
		tries: disguised(byAddress(), func(r *http.Request, i int) {
			r.RemoteAddr = fmt.Sprintf("[2001:db8::%x]:%d", i, 1024+i)
		})}
}
