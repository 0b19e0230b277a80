package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
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

// slow is a limit whose waits are not whole seconds.
var slow = quota{1, 1500 * time.Millisecond}

// obeyedRetryAfter does as the response says.
func obeyedRetryAfter() attack {
	const tries = 3
	a := attack{id: "retry-after", title: "A client that obeys Retry-After is denied again",
		does: "Limit 1 in 1.5 s. A client is admitted, denied, waits as long as the denial says, and asks again; three times. " +
			"(tollbooth and ulule send no Retry-After; their client obeys RateLimit-Reset and X-RateLimit-Reset.)",
		holds:    "each time it is admitted",
		together: true}
	for _, m := range slowly() {
		a.tries = append(a.tries, try{m.name, func() outcome {
			said, denied := make([]string, tries), make([]bool, tries)
			var all sync.WaitGroup
			for i := range tries {
				all.Go(func() { said[i], denied[i] = obey(m.make()) })
			}
			all.Wait()
			n := 0
			for _, d := range denied {
				if d {
					n++
				}
			}
			return outcome{fmt.Sprintf("denied %d of %d times after %s", n, tries, said[0]), n == 0}
		}})
	}
	return a
}

// slowly makes a new middleware of each library each time.
func slowly() []struct {
	name string
	make func() func(http.Handler) http.Handler
} {
	type wrap = func(http.Handler) http.Handler
	return []struct {
		name string
		make func() wrap
	}{
		{sluice, func() wrap {
			return httpmw.Limit(algo.Must(algo.NewTokenBucket(slow.rate())), keyfunc.ClientIP())
		}},
		{"httprate", func() wrap { return httprate.LimitBy(slow.units, slow.period, httprate.KeyByIP) }},
		{"throttled", func() wrap {
			return (&throttled.HTTPRateLimiterCtx{VaryBy: &throttled.VaryBy{RemoteAddr: true},
				RateLimiter: newThrottled(throttled.PerDuration(slow.units, slow.period), 0, 0)}).RateLimit
		}},
		{"go-limiter", func() wrap {
			return must(httplimit.NewMiddleware(must(memorystore.New(&memorystore.Config{
				Tokens: 1, Interval: slow.period})), httplimit.IPKeyFunc())).Handle
		}},
		{"tollbooth", func() wrap { return boothBy(tollbooth.NewLimiter(1/slow.period.Seconds(), nil)) }},
		{"ulule", func() wrap {
			return stdlib.NewMiddleware(ulule.New(memory.NewStore(), ulule.Rate{Period: slow.period, Limit: 1})).Handler
		}},
	}
}

// obey sends requests until one is denied, waits as long as the denial says, and repeats.
func obey(wrap func(http.Handler) http.Handler) (said string, denied bool) {
	serve := responses(wrap)
	w := serve(nil)
	for range 3 {
		if w.Code == http.StatusTooManyRequests {
			break
		}
		w = serve(nil)
	}
	field, until := invited(w.Result().Header)
	time.Sleep(time.Until(until))
	return field, serve(nil).Code != http.StatusOK
}

// invited is the instant from which the client may retry, and the field of the
// denial that has it: seconds, a date, or the second of an epoch.
func invited(h http.Header) (field string, until time.Time) {
	for _, name := range []string{"Retry-After", "RateLimit-Reset", "X-RateLimit-Reset"} {
		v := h.Get(name)
		if v == "" {
			continue
		}
		field = name + ": " + v
		if date, err := http.ParseTime(strings.Replace(v, "UTC", "GMT", 1)); err == nil {
			return field, date
		}
		n, err := strconv.ParseInt(v, 10, 64)
		switch {
		case err != nil:
			return field + " (unreadable)", time.Now()
		case n > 1e9:
			return field, time.Unix(n, 0)
		}
		return field, time.Now().Add(time.Duration(n) * time.Second)
	}
	return "nothing", time.Now()
}

// windowEdge asks for a whole limit on either side of the instant at which a
// fixed window ends.
func windowEdge() attack {
	const units = 100
	q := quota{units, time.Second}
	edge := func(ask func() bool) outcome {
		start := time.Now()
		ask()
		time.Sleep(time.Until(start.Add(q.period * 95 / 100)))
		burst := time.Now()
		got := count(units-1, ask)
		time.Sleep(time.Until(start.Add(q.period * 105 / 100)))
		got += count(units, ask)
		took := time.Since(burst)
		most := units + int(took.Seconds()*units) + 1
		return outcome{fmt.Sprintf("%d in %d ms, bound %d", got, took.Milliseconds(), most), got <= most}
	}
	a := attack{id: "window-edge", title: "Twice the limit around the edge of a window",
		does:  "Limit 100 a second. One request, then 99 after 0.95 s and 100 after 1.05 s.",
		holds: "of these 199, at most 100 + 100/s * their duration, and 1, are admitted",
		tries: []try{
			{"sluice FixedWindow, whose documentation says so", func() outcome {
				l := algo.Must(algo.NewFixedWindow(q.rate()))
				return edge(func() bool { return l.Allow("k", 1) })
			}},
			{"sluice SlidingLog", func() outcome {
				l := algo.Must(algo.NewSlidingLog(q.rate()))
				return edge(func() bool {
					lease, err := l.Acquire(context.Background(), "k", 1)
					return err == nil && lease.Allowed
				})
			}},
		},
		together: true}
	for _, lib := range keyedLibraries() {
		a.tries = append(a.tries, try{lib.library, func() outcome {
			ask := lib.make(q, 1000)
			return edge(func() bool { return ask("k") })
		}})
	}
	return a
}
