package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	tollbooth "github.com/didip/tollbooth/v7"
	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

const (
	httpHeaders = "sluice"
	httpNone    = "sluice, no fields"
	httpClients = 1024
)

// quota is a limit that every library can express.
type quota struct {
	units  int
	period time.Duration
}

var (
	plenty  = quota{fast, time.Second}
	nothing = quota{1, 24 * time.Hour} // once each client has spent its one
)

func (q quota) rate() algo.Rate { return algo.Per(int64(q.units), q.period) }

// middleware is one library's middleware that limits by the client's address.
type middleware struct {
	name string
	kind kind
	wrap func(http.Handler) http.Handler
}

// middlewares limit each client to q, as its documentation says for servers
// that clients reach directly.
func middlewares(q quota) []middleware {
	bucket := func() algo.Limiter { return algo.Must(algo.NewTokenBucket(q.rate())) }
	ip := keyfunc.ClientIP()
	golimiter := must(httplimit.NewMiddleware(must(memorystore.New(golimiterConfig(q))), httplimit.IPKeyFunc()))
	throttle := throttled.HTTPRateLimiterCtx{
		VaryBy: &throttled.VaryBy{RemoteAddr: true},
		RateLimiter: must(throttled.NewGCRARateLimiterCtx(must(memstore.NewCtx(1<<16)),
			throttled.RateQuota{MaxRate: throttled.PerDuration(q.units, q.period), MaxBurst: q.units - 1})),
	}
	rate := float64(q.units) / q.period.Seconds()
	booth := tollbooth.NewLimiter(rate, nil).SetBurst(q.units).
		SetIPLookups([]string{"RemoteAddr"}).SetIgnoreURL(true)
	return []middleware{
		{"bare handler", floor, func(h http.Handler) http.Handler { return h }},
		{httpHeaders, ours, httpmw.Limit(bucket(), ip)},
		{"sluice, legacy fields", ours, httpmw.Limit(bucket(), ip, httpmw.WithHeaders(httpmw.Legacy))},
		{httpNone, ours, httpmw.Limit(bucket(), ip, httpmw.WithHeaders(httpmw.None))},
		{"httprate", peer, httprate.LimitBy(q.units, q.period, httprate.KeyByIP)},
		{"httprate, no fields", peer, httprate.LimitBy(q.units, q.period, httprate.KeyByIP,
			httprate.WithResponseHeaders(httprate.ResponseHeaders{}))},
		{"throttled", peer, throttle.RateLimit},
		{"tollbooth", peer, func(h http.Handler) http.Handler { return tollbooth.LimitHandler(booth, h) }},
		{"ulule", peer, stdlib.NewMiddleware(ulule.New(memory.NewStore(),
			ulule.Rate{Period: q.period, Limit: int64(q.units)})).Handler},
		{"go-limiter", peer, golimiter.Handle},
	}
}

// golimiterConfig is q for go-limiter. It refills period/units tokens in a
// period instead of units, so the large quota gets a period that never ends.
func golimiterConfig(q quota) *memorystore.Config {
	if q == plenty {
		return &memorystore.Config{Tokens: huge, Interval: 24 * time.Hour}
	}
	return &memorystore.Config{Tokens: uint64(q.units), Interval: q.period}
}

// overHTTP serves requests of httpClients clients in turn.
func overHTTP(q quota) []contender {
	var cs []contender
	reqs := requests(httpClients)
	for _, m := range middlewares(q) {
		cs = append(cs, contender{m.name, m.kind, serve(m, reqs, q == nothing)})
	}
	return cs
}

// serve is for one goroutine. With spent it serves each client once
// beforehand; the bare handler then is one that refuses.
func serve(m middleware, reqs []*http.Request, spent bool) func(int) int {
	inner := &counter{refuse: spent && m.kind == floor}
	h := m.wrap(inner)
	w := &sink{header: make(http.Header, 8)}
	if spent {
		for _, r := range reqs {
			h.ServeHTTP(w, r)
		}
	}
	next := 0
	return func(n int) int {
		before := inner.served
		for range n {
			h.ServeHTTP(w, reqs[next])
			clear(w.header)
			if next++; next == len(reqs) {
				next = 0
			}
		}
		return inner.served - before
	}
}

// counter is a handler that does nothing but count.
type counter struct {
	served int
	refuse bool // or not even that
}

func (c *counter) ServeHTTP(http.ResponseWriter, *http.Request) {
	if !c.refuse {
		c.served++
	}
}

// sink is a response writer that costs nothing. Its header map is used again
// for each response, which costs all contenders the same.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header                  { return s.header }
func (s *sink) Write(b []byte) (int, error)          { return len(b), nil }
func (s *sink) WriteString(text string) (int, error) { return len(text), nil }
func (s *sink) WriteHeader(status int)               { s.status = status }

// requests come from n clients, each with an address of its own.
func requests(n int) []*http.Request {
	rs := make([]*http.Request, n)
	for i := range rs {
		rs[i] = httptest.NewRequest(http.MethodGet, "/orders", nil)
		rs[i].RemoteAddr = fmt.Sprintf("198.51.%d.%d:%d", i>>8, i&255, 40000+i)
	}
	return rs
}
