package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/juju/ratelimit"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/interleave"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"golang.org/x/time/rate"
)

// timeAttacks go by the clock: stale readings, waits, refunds, edges of windows.
func timeAttacks() []attack {
	return append([]attack{{
		id: "stale-clock", title: "The clock goes back",
		does: "Limit 1000 a second, burst 10. 500 callers read the clock and are held up for 50 ms; then they decide in turn with 500 that have just read it. " +
			"(sluice takes no instant: its callers are held up inside, between the reading and the decision. throttled and juju are handed a clock that alternates.)",
		holds: "at most 10 + 1000/s * the time it took",
		tries: []try{{sluice, staleSluice}, {"x/time/rate", staleXTime}, {"juju", staleJuju}, {"throttled", staleThrottled}},
	}, {
		id: "retry-after", title: "A client that obeys Retry-After is denied again",
		does: "Limit 1 in 1.5 s. A client is admitted, denied, waits as long as the denial says, and asks again; three times. " +
			"(tollbooth and ulule send no Retry-After; their client obeys RateLimit-Reset and X-RateLimit-Reset.)",
		holds: "each time it is admitted", together: true,
		tries: each(hasMiddleware, obeyed),
	}, {
		id: "window-edge", title: "Twice the limit around the edge of a window",
		does:  "Limit 100 a second. One request, then 99 after 0.95 s and 100 after 1.05 s.",
		holds: "of these 199, at most 100 + 100/s * their duration, and 1, are admitted", together: true,
		tries: append([]try{
			{"sluice FixedWindow, whose documentation says so", func() outcome { return atEdge(acquiring(algo.Must(algo.NewFixedWindow(edged.rate()))).of("k")) }},
			{"sluice SlidingLog", func() outcome { return atEdge(acquiring(algo.Must(algo.NewSlidingLog(edged.rate()))).of("k")) }},
		}, each(hasKeys, func(l library) outcome { return atEdge(l.limit(edged, 1000).of("k")) })...),
	}}, waitAttacks()...)
}

const (
	staleCallers = 500
	staleGap     = 50 * time.Millisecond
	staleRate    = 1000
	staleBurst   = 10
)

// bounded compares the admissions with the bound of a token bucket.
func bounded(got int, took time.Duration) outcome {
	most := staleBurst + int(took.Seconds()*staleRate)
	return outcome{fmt.Sprintf("%d of %d admitted in %d ms, bound %d", got, 2*staleCallers, took.Milliseconds(), most), got <= most}
}

// staleSluice holds 500 calls between reading the clock and the swap. When they
// go on, the word has changed, so each decides anew with its old reading.
func staleSluice() outcome {
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(staleRate), algo.Burst(staleBurst)))
	start := time.Now()
	var held atomic.Int64
	proceed, answers := make(chan struct{}), make(chan bool)
	var allHeld sync.WaitGroup
	allHeld.Add(staleCallers)
	interleave.Hook = func() {
		if held.Add(1) <= staleCallers {
			allHeld.Done()
			<-proceed
		}
	}
	defer func() { interleave.Hook = nil }()
	for range staleCallers {
		go func() { answers <- l.Allow("", 1) }()
	}
	allHeld.Wait()
	time.Sleep(staleGap)
	got := 0
	for range staleCallers {
		got += count(1, func() bool { return l.Allow("", 1) })
		proceed <- struct{}{}
		got += count(1, func() bool { return <-answers })
	}
	return bounded(got, time.Since(start))
}

// alternating decides in turn with fresh readings and with old ones.
func alternating(decide func(at time.Time) bool) outcome {
	old := time.Now()
	time.Sleep(staleGap)
	got := 0
	for range staleCallers {
		got += count(1, func() bool { return decide(time.Now()) })
		got += count(1, func() bool { return decide(old) })
	}
	return bounded(got, time.Since(old))
}

func staleXTime() outcome {
	l := rate.NewLimiter(staleRate, staleBurst)
	return alternating(func(at time.Time) bool { return l.AllowN(at, 1) })
}

// handedClock is a clock that is set by hand.
type handedClock struct{ at time.Time }

func (c *handedClock) Now() time.Time      { return c.at }
func (c *handedClock) Sleep(time.Duration) {}

func staleJuju() outcome {
	c := &handedClock{time.Now()}
	b := ratelimit.NewBucketWithClock(time.Second/staleRate, staleBurst, c)
	return alternating(func(at time.Time) bool {
		c.at = at
		return b.TakeAvailable(1) == 1
	})
}

func staleThrottled() outcome {
	c := &handedClock{time.Now()}
	store := algo.Must(memstore.New(0))
	store.SetTimeNow(c.Now)
	quota := throttled.RateQuota{MaxRate: throttled.PerSec(staleRate), MaxBurst: staleBurst - 1}
	take := throttledAsk(algo.Must(throttled.NewGCRARateLimiterCtx(throttled.WrapStoreWithContext(store), quota)))
	return alternating(func(at time.Time) bool {
		c.at = at
		return take("k", 1)
	})
}

// obeyed lets three clients do as the response says. The wait is not a number of whole seconds.
func obeyed(l library) outcome {
	const tries = 3
	said, denied := make([]string, tries), make([]bool, tries)
	var all sync.WaitGroup
	for i := range tries {
		all.Go(func() { said[i], denied[i] = obey(l.wrap(quota{1, 1500 * time.Millisecond}, false)) })
	}
	all.Wait()
	i := -1
	n := count(tries, func() bool { i++; return denied[i] })
	return outcome{fmt.Sprintf("denied %d of %d times after %s", n, tries, said[0]), n == 0}
}

// obey sends requests until one is denied, waits as long as the denial says, and repeats.
func obey(wrap wrap) (said string, denied bool) {
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

var edged = quota{100, time.Second}

// atEdge asks for a whole limit on either side of the instant at which a fixed window ends.
func atEdge(ask func() bool) outcome {
	start := time.Now()
	ask()
	time.Sleep(time.Until(start.Add(edged.period * 95 / 100)))
	burst := time.Now()
	got := count(edged.units-1, ask)
	time.Sleep(time.Until(start.Add(edged.period * 105 / 100)))
	got += count(edged.units, ask)
	took := time.Since(burst)
	most := edged.units + int(took.Seconds()*edged.perSecond()) + 1
	return outcome{fmt.Sprintf("%d in %d ms, bound %d", got, took.Milliseconds(), most), got <= most}
}
