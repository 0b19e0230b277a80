package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	tollbooth "github.com/didip/tollbooth/v7"
	tblimiter "github.com/didip/tollbooth/v7/limiter"
	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/throttled/throttled/v2"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"
)

// keyedLibrary is a limiter of q for each key, with room for about keys of them
// where that can be said.
type keyedLibrary struct {
	library string
	make    func(q quota, keys int) func(key string) bool
}

func keyedLibraries() []keyedLibrary {
	ctx := context.Background()
	return []keyedLibrary{
		{sluice, func(q quota, keys int) func(string) bool {
			l := algo.Must(algo.NewTokenBucket(q.rate(), algo.MaxKeys(keys)))
			return func(k string) bool { return l.Allow(k, 1) }
		}},
		{"go-limiter", func(q quota, _ int) func(string) bool {
			s := must(memorystore.New(&memorystore.Config{Tokens: uint64(q.units), Interval: q.period}))
			return func(k string) bool { _, _, _, ok, err := s.Take(ctx, k); return ok && err == nil }
		}},
		{"throttled", func(q quota, keys int) func(string) bool {
			l := newThrottled(throttled.PerDuration(q.units, q.period), q.units-1, keys)
			return func(k string) bool {
				limited, _, err := l.RateLimitCtx(ctx, k, 1)
				return err == nil && !limited
			}
		}},
		{"ulule", func(q quota, _ int) func(string) bool {
			l := ulule.New(memory.NewStore(), ulule.Rate{Period: q.period, Limit: int64(q.units)})
			return func(k string) bool { c, err := l.Get(ctx, k); return err == nil && !c.Reached }
		}},
		{"httprate", func(q quota, _ int) func(string) bool {
			l := httprate.NewRateLimiter(q.units, q.period)
			w, r := &sink{header: make(http.Header)}, httptest.NewRequest(http.MethodGet, "/", nil)
			return func(k string) bool { return !l.OnLimit(w, r, k) }
		}},
		{"tollbooth", func(q quota, _ int) func(string) bool {
			l := tollbooth.NewLimiter(float64(q.units)/q.period.Seconds(), nil).SetBurst(q.units)
			return func(k string) bool { return tollbooth.LimitByKeys(l, []string{k}) == nil }
		}},
		{"sync.Map of x/time/rate", func(q quota, _ int) func(string) bool {
			var m sync.Map
			every := rate.Every(q.period / time.Duration(q.units))
			return func(k string) bool {
				l, _ := m.LoadOrStore(k, rate.NewLimiter(every, q.units))
				return l.(*rate.Limiter).Allow()
			}
		}},
	}
}

// keyFlood makes up half a million keys.
func keyFlood() attack {
	const half = 250_000
	a := attack{id: "key-flood", title: "A flood of keys fills the memory",
		does:  "Limit 10 a minute each, room for 65 536 keys where that can be said. 500 000 different keys ask once each.",
		holds: "the last 250 000 keys add less than 1 MB"}
	for _, lib := range keyedLibraries() {
		a.tries = append(a.tries, try{lib.library, func() outcome {
			before := heap()
			ask := lib.make(quota{10, time.Minute}, 1<<16)
			flood(ask, 0, half)
			middle := heap()
			flood(ask, half, 2*half)
			after := heap()
			runtime.KeepAlive(ask)
			added := max(after-middle, 0)
			return outcome{fmt.Sprintf("%.1f MB kept, %.1f MB of it for the last 250 000", mb(after-before), mb(added)), added < 1<<20}
		}})
	}
	return a
}

func flood(ask func(string) bool, from, to int) {
	for i := from; i < to; i++ {
		ask("client-" + strconv.Itoa(i))
	}
}

func mb(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// heap is the live memory after a garbage collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// rotatedKeys tries to push a key that has spent its limit out of the table.
func rotatedKeys() attack {
	a := attack{id: "rotated-keys", title: "Rotating more keys than there is room for resets all limits",
		does:  "Limit 10 an hour each, room for 1000 keys where that can be said. Ten times: a client asks 10 times, then 2000 keys never seen before ask once each.",
		holds: "the client is admitted at most 10 times of 100"}
	for _, lib := range keyedLibraries() {
		a.tries = append(a.tries, try{lib.library, func() outcome {
			ask, got := lib.make(quota{10, time.Hour}, 1000), 0
			for i := range 10 {
				got += count(10, func() bool { return ask("victim") })
				flood(ask, i*2000, (i+1)*2000)
			}
			return atMost(10, got, 100)
		}})
	}
	return a
}

// joinedKeys makes up pairs that differ and may become the same key.
func joinedKeys() attack {
	request := func(a, b string) func(*http.Request) *http.Request {
		return func(r *http.Request) *http.Request {
			r.Header.Set("X-A", a)
			r.Header.Set("X-B", b)
			r.URL.RawQuery = url.Values{"a": {a}, "b": {b}}.Encode()
			return r
		}
	}
	collide := func(make func() func(http.Handler) http.Handler) func() outcome {
		return func() outcome {
			separators := strings.Split(`: , ; | / . - _ = & # %0A |X-B|`, " ")
			shared := 0
			for _, sep := range separators {
				if sep == "%0A" {
					sep = "\n"
				}
				// tollbooth orders the values at random, so try often.
				if count(32, func() bool {
					h := handled(make())
					h(request("a"+sep+"b", "c"))
					return h(request("a", "b"+sep+"c")) != http.StatusOK
				}) > 0 {
					shared++
				}
			}
			return outcome{fmt.Sprintf("%d of %d pairs share a limit", shared, len(separators)), shared == 0}
		}
	}
	header := func(name string) httprate.KeyFunc {
		return func(r *http.Request) (string, error) { return r.Header.Get(name), nil }
	}
	return attack{id: "joined-keys", title: "`a:b` joined with `c` is `a` joined with `b:c`",
		does:  "Limit 1 an hour by two values of the request together. For each of 13 separators s, one client has the values (a s b, c), another one (a, b s c).",
		holds: "no two clients share a limit",
		tries: []try{
			{sluice, collide(func() func(http.Handler) http.Handler {
				return httpmw.Limit(algo.Must(algo.NewTokenBucket(algo.PerHour(1))),
					keyfunc.Join(keyfunc.Header("X-A"), keyfunc.Header("X-B")))
			})},
			{"httprate", collide(func() func(http.Handler) http.Handler {
				return httprate.LimitBy(1, time.Hour, httprate.JoinKeys(header("X-A"), header("X-B")))
			})},
			{"throttled", collide(func() func(http.Handler) http.Handler {
				l := throttled.HTTPRateLimiterCtx{RateLimiter: newThrottled(throttled.PerHour(1), 0, 0),
					VaryBy: &throttled.VaryBy{Params: []string{"a", "b"}}}
				return l.RateLimit
			})},
			{"tollbooth", collide(func() func(http.Handler) http.Handler {
				return boothBy(tollbooth.NewLimiter(1.0/3600, nil).SetHeader("X-A", nil).SetHeader("X-B", nil))
			})},
		}}
}

func boothBy(l *tblimiter.Limiter) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler { return tollbooth.LimitHandler(l, h) }
}
