package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"time"

	tollbooth "github.com/didip/tollbooth/v7"
	"github.com/go-chi/httprate"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

// keyAttacks make up keys.
func keyAttacks() []attack {
	const half = 250_000
	return []attack{{
		id: "key-flood", title: "A flood of keys fills the memory",
		does:  "Limit 10 a minute each, room for 65 536 keys where that can be said. 500 000 different keys ask once each.",
		holds: "the last 250 000 keys add less than 1 MB",
		tries: each(hasKeys, func(l library) outcome {
			before := heap()
			ask := l.limit(quota{10, time.Minute}, 1<<16)
			flood(ask, 0, half)
			middle := heap()
			flood(ask, half, 2*half)
			after := heap()
			runtime.KeepAlive(ask)
			added := max(after-middle, 0)
			return outcome{fmt.Sprintf("%.1f MB kept, %.1f MB of it for the last 250 000", mb(after-before), mb(added)), added < 1<<20}
		}),
	}, {
		id: "rotated-keys", title: "Rotating more keys than there is room for resets all limits",
		does:  "Limit 10 an hour each, room for 1000 keys where that can be said. Ten times: a client asks 10 times, then 2000 keys never seen before ask once each.",
		holds: "the client is admitted at most 10 times of 100",
		tries: each(hasKeys, func(l library) outcome {
			ask, got := l.limit(tenAnHour, 1000), 0
			for i := range 10 {
				got += count(10, func() bool { return ask("victim", 1) })
				flood(ask, i*2000, (i+1)*2000)
			}
			return atMost(10, got, 100)
		}),
	}, {
		id: "joined-keys", title: "`a:b` joined with `c` is `a` joined with `b:c`",
		does:  "Limit 1 an hour by two values of the request together. For each of 13 separators s, one client has the values (a s b, c), another one (a, b s c).",
		holds: "no two clients share a limit",
		tries: joinedKeys(),
	}, {
		id: "forged-header", title: "A client that is connected directly makes up X-Forwarded-For",
		does:  "Limit 10 an hour and client address, nothing said about proxies. One client sends 1000 requests from changing ports, each with another address in X-Forwarded-For.",
		holds: "at most 10 are admitted",
		tries: disguised(false, func(r *http.Request, i int) {
			r.RemoteAddr = fmt.Sprintf("203.0.113.9:%d", 1024+i)
			r.Header.Set("X-Forwarded-For", fmt.Sprintf("198.51.%d.%d", i>>8, i&255))
		}),
	}, {
		id: "left-most", title: "The left-most X-Forwarded-For is believed",
		does:  "The same behind one proxy, which appends the address of the client to the client's header. Each library in the mode that it offers for that (throttled has none).",
		holds: "at most 10 are admitted",
		tries: disguised(true, func(r *http.Request, i int) {
			r.RemoteAddr = "10.0.0.1:443"
			r.Header.Set("X-Forwarded-For", fmt.Sprintf("198.51.%d.%d, 203.0.113.9", i>>8, i&255))
		}),
	}, {
		id: "ipv6", title: "One IPv6 subscriber uses many addresses",
		does:  "Limit 10 an hour and client address. 1000 requests from different addresses of one /64.",
		holds: "at most 10 are admitted",
		tries: disguised(false, func(r *http.Request, i int) { r.RemoteAddr = fmt.Sprintf("[2001:db8::%x]:%d", i, 1024+i) }),
	}}
}

func flood(ask ask, from, to int) {
	for i := from; i < to; i++ {
		ask("client-"+strconv.Itoa(i), 1)
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

// disguised counts the admissions of one client that looks different each time.
func disguised(proxied bool, change func(r *http.Request, i int)) (tries []try) {
	const n = 1000
	for _, l := range those(func(l library) bool { return l.wrap != nil && l.wrap(tenAnHour, proxied) != nil }) {
		if proxied {
			l.name += l.mode
		}
		tries = append(tries, try{l.name, func() outcome {
			serve, i := handled(l.wrap(tenAnHour, proxied)), 0
			got := count(n, func() bool {
				i++
				return serve(func(r *http.Request) *http.Request { change(r, i); return r }) == http.StatusOK
			})
			return atMost(10, got, n)
		}})
	}
	return tries
}

// joinedKeys makes up pairs that differ and may become the same key.
func joinedKeys() (tries []try) {
	header := func(name string) httprate.KeyFunc {
		return func(r *http.Request) (string, error) { return r.Header.Get(name), nil }
	}
	for _, m := range []struct {
		library string
		make    func() wrap
	}{
		{sluice, func() wrap {
			return httpmw.Limit(algo.Must(algo.NewTokenBucket(algo.PerHour(1))), keyfunc.Join(keyfunc.Header("X-A"), keyfunc.Header("X-B")))
		}},
		{"httprate", func() wrap {
			return httprate.LimitBy(1, time.Hour, httprate.JoinKeys(header("X-A"), header("X-B")))
		}},
		{"throttled", func() wrap {
			l := throttled.HTTPRateLimiterCtx{RateLimiter: newThrottled(quota{1, time.Hour}, algo.Must(memstore.NewCtx(0))), VaryBy: &throttled.VaryBy{Params: []string{"a", "b"}}}
			return l.RateLimit
		}},
		{"tollbooth", func() wrap {
			return booth(tollbooth.NewLimiter(1.0/3600, nil).SetHeader("X-A", nil).SetHeader("X-B", nil))
		}},
	} {
		tries = append(tries, try{m.library, func() outcome { return collide(m.make) }})
	}
	return tries
}

func collide(make func() wrap) outcome {
	request := func(a, b string) func(*http.Request) *http.Request {
		return func(r *http.Request) *http.Request {
			r.Header.Set("X-A", a)
			r.Header.Set("X-B", b)
			r.URL.RawQuery = url.Values{"a": {a}, "b": {b}}.Encode()
			return r
		}
	}
	separators := append(strings.Split(`: , ; | / . - _ = & # |X-B|`, " "), "\n")
	shared := 0
	for _, sep := range separators {
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

// handled serves one request at a time through a middleware and returns the
// status. The request is a GET of / from 192.0.2.1, changed by change.
func handled(wrap wrap) func(change func(*http.Request) *http.Request) int {
	h := responses(wrap)
	return func(change func(*http.Request) *http.Request) int { return h(change).Code }
}

// responses is like handled, for tries that also read the fields.
func responses(wrap wrap) func(change func(*http.Request) *http.Request) *httptest.ResponseRecorder {
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
