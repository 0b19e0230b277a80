package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"time"

	"github.com/RussellLuo/slidingwindow"
	tollbooth "github.com/didip/tollbooth/v7"
	tblimiter "github.com/didip/tollbooth/v7/limiter"
	"github.com/go-chi/httprate"
	"github.com/juju/ratelimit"
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
	"golang.org/x/time/rate"
)

// quota is a limit that every library can express: units in each period, all at once if the
// library has a burst.
type quota struct {
	units  int
	period time.Duration
}

// plenty is more than a run can spend, at about a unit a nanosecond.
var plenty = quota{1 << 46, 24 * time.Hour}

var tenAnHour = quota{10, time.Hour}

func (q quota) rate() algo.Rate              { return algo.Per(int64(q.units), q.period) }
func (q quota) unit() time.Duration          { return q.period / time.Duration(q.units) }
func (q quota) perSecond() float64           { return float64(q.units) / q.period.Seconds() }
func (q quota) ulule() ulule.Rate            { return ulule.Rate{Period: q.period, Limit: int64(q.units)} }
func (q quota) window() (int, time.Duration) { return q.units, q.period }

type (
	// ask asks for n units of a key and reports whether they were admitted.
	ask func(key string, n int) bool
	// wrap is a middleware.
	wrap = func(http.Handler) http.Handler
)

// library is one library behind one face.
type library struct {
	name   string
	keyed  bool // its limiter has keys
	signed bool // its cost is a signed number
	limit  func(q quota, keys int) ask
	// wrap is its middleware by client address, as its documentation says for servers that
	// clients reach directly, or through one proxy at 10.0.0.1. nil: it has none for that.
	wrap func(q quota, proxied bool) wrap
	mode string // of the one for proxies
}

// libraries are all with a rate limit, this one first.
func libraries() []library {
	ctx := context.Background()
	return []library{
		{sluice, true, true, func(q quota, keys int) ask {
			l := algo.Must(algo.NewTokenBucket(q.rate(), algo.MaxKeys(keys)))
			return func(k string, n int) bool { return l.Allow(k, int64(n)) }
		}, func(q quota, proxied bool) wrap {
			var proxies []netip.Prefix
			if proxied {
				proxies = append(proxies, netip.MustParsePrefix("10.0.0.0/8"))
			}
			return httpmw.Limit(algo.Must(algo.NewTokenBucket(q.rate())), keyfunc.ClientIP(proxies...))
		}, ""},
		{"go-limiter", true, false, func(q quota, _ int) ask {
			s := algo.Must(memorystore.New(&memorystore.Config{Tokens: uint64(q.units), Interval: q.period}))
			return func(k string, _ int) bool { _, _, _, ok, err := s.Take(ctx, k); return ok && err == nil }
		}, func(q quota, proxied bool) wrap {
			var headers []string
			if proxied {
				headers = append(headers, "X-Forwarded-For")
			}
			s := algo.Must(memorystore.New(&memorystore.Config{Tokens: uint64(q.units), Interval: q.period}))
			return algo.Must(httplimit.NewMiddleware(s, httplimit.IPKeyFunc(headers...))).Handle
		}, " IPKeyFunc(X-Forwarded-For)"},
		{"throttled", true, true, func(q quota, keys int) ask {
			return throttledAsk(newThrottled(q, algo.Must(memstore.NewCtx(keys))))
		}, func(q quota, proxied bool) wrap {
			if proxied {
				return nil
			}
			l := newThrottled(q, algo.Must(memstore.NewCtx(1<<16)))
			return (&throttled.HTTPRateLimiterCtx{RateLimiter: l, VaryBy: &throttled.VaryBy{RemoteAddr: true}}).RateLimit
		}, ""},
		{"ulule", true, true, func(q quota, _ int) ask {
			return ululeAsk(ulule.New(memory.NewStore(), q.ulule()))
		}, func(q quota, proxied bool) wrap {
			return stdlib.NewMiddleware(ulule.New(memory.NewStore(), q.ulule(), ulule.WithTrustForwardHeader(proxied))).Handler
		}, " WithTrustForwardHeader"},
		{"httprate", true, true, func(q quota, _ int) ask {
			l := httprate.NewRateLimiter(q.window())
			w, r := &sink{header: make(http.Header)}, httptest.NewRequest(http.MethodGet, "/", nil)
			return func(k string, n int) bool {
				if n != 1 {
					return !l.OnLimit(w, r.WithContext(httprate.WithIncrement(ctx, n)), k)
				}
				return !l.OnLimit(w, r, k)
			}
		}, func(q quota, proxied bool) wrap {
			if proxied {
				return httprate.LimitBy(q.units, q.period, httprate.KeyByRealIP)
			}
			return httprate.LimitBy(q.units, q.period, httprate.KeyByIP)
		}, " KeyByRealIP (deprecated)"},
		{"tollbooth", true, false, func(q quota, _ int) ask {
			l := tollbooth.NewLimiter(q.perSecond(), nil).SetBurst(q.units)
			return func(k string, _ int) bool { return tollbooth.LimitByKeys(l, []string{k}) == nil }
		}, func(q quota, _ bool) wrap { return booth(tollbooth.NewLimiter(q.perSecond(), nil).SetBurst(q.units)) }, ""},
		{"sync.Map of x/time/rate", true, false, func(q quota, _ int) ask {
			var m sync.Map
			every := rate.Every(q.unit())
			return func(k string, _ int) bool {
				l, ok := m.Load(k)
				if !ok {
					l, _ = m.LoadOrStore(k, rate.NewLimiter(every, q.units))
				}
				return l.(*rate.Limiter).Allow()
			}
		}, nil, ""},
		{"x/time/rate", false, true, func(q quota, _ int) ask {
			l := rate.NewLimiter(rate.Every(q.unit()), q.units)
			return func(_ string, n int) bool { return l.AllowN(time.Now(), n) }
		}, nil, ""},
		{"juju", false, true, func(q quota, _ int) ask {
			b := ratelimit.NewBucket(q.unit(), int64(q.units))
			return func(_ string, n int) bool { _, ok := b.TakeMaxDuration(int64(n), 0); return ok }
		}, nil, ""},
		{"slidingwindow", false, true, func(q quota, _ int) ask {
			l, _ := slidingwindow.NewLimiter(q.period, int64(q.units), localWindow)
			return func(_ string, n int) bool { return l.AllowN(time.Now(), int64(n)) }
		}, nil, ""},
	}
}

func localWindow() (slidingwindow.Window, slidingwindow.StopFunc) {
	return slidingwindow.NewLocalWindow()
}

func newThrottled(q quota, store throttled.GCRAStoreCtx) *throttled.GCRARateLimiterCtx {
	return algo.Must(throttled.NewGCRARateLimiterCtx(store,
		throttled.RateQuota{MaxRate: throttled.PerDuration(q.units, q.period), MaxBurst: q.burst() - 1}))
}

func throttledAsk(l *throttled.GCRARateLimiterCtx) ask {
	return func(k string, n int) bool {
		limited, _, err := l.RateLimitCtx(context.Background(), k, n)
		return err == nil && !limited
	}
}

func ululeAsk(l *ulule.Limiter) ask {
	ctx := context.Background()
	return func(k string, n int) bool {
		if n == 1 {
			c, err := l.Get(ctx, k)
			return err == nil && !c.Reached
		}
		c, err := l.Increment(ctx, k, int64(n))
		return err == nil && !c.Reached
	}
}

func booth(l *tblimiter.Limiter) wrap {
	return func(h http.Handler) http.Handler { return tollbooth.LimitHandler(l, h) }
}

// those are the libraries for which is holds.
func those(is func(library) bool) (all []library) {
	for _, l := range libraries() {
		if is(l) {
			all = append(all, l)
		}
	}
	return all
}

func hasKeys(l library) bool       { return l.keyed }
func isSigned(l library) bool      { return l.signed }
func hasMiddleware(l library) bool { return l.wrap != nil }

// of asks for one unit of a key.
func (a ask) of(key string) func() bool { return func() bool { return a(key, 1) } }
