package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	tollbooth "github.com/didip/tollbooth/v7"
	"github.com/go-chi/httprate"
	"github.com/juju/ratelimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/sluice-go/sluice/algo"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

// limitAttacks attack the arithmetic: costs and rates that no limit can mean.
func limitAttacks() []attack {
	costs := []int{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - 9}
	for shift := 31; shift < 63; shift++ {
		costs = append(costs, 1<<shift, 1<<shift+1)
	}
	return []attack{{
		id: "negative-cost", title: "A negative cost mints",
		does:  "Limit 10 an hour. Ten times: ask 10 times for 1, then once for -1000.",
		holds: "at most 10 of the 100 asked for are admitted",
		tries: each(isSigned, func(l library) outcome {
			spend, got := l.limit(tenAnHour, 1000), 0
			for range 10 {
				got += count(10, func() bool { return spend("k", 1) })
				spend("k", -1000)
			}
			return atMost(10, got, 100)
		}),
	}, {
		id: "huge-cost", title: "A cost near 2^63 wraps around",
		does:  fmt.Sprintf("Limit 10 an hour, 1 spent. Ask for %d costs from 2^31 to 2^63-1.", len(costs)),
		holds: "none is admitted",
		tries: each(isSigned, func(l library) outcome {
			spend, got := l.limit(tenAnHour, 1000), 0
			spend("k", 1)
			for _, n := range costs {
				got += count(1, func() bool { return spend("k", n) })
			}
			return atMost(0, got, len(costs))
		}),
	}, {
		id: "absurd-rates", title: "NaN, zero, negative and infinite rates",
		does:  "Make a limiter with burst 10 and each rate that its types can express, and ask 1000 times. (An infinite rate is left out where it is documented to mean no limit.)",
		holds: "an error, or at most 10 admitted; no panic and no freedom",
		tries: absurdRates(),
	}}
}

func absurdRates() []try {
	ctx, nan, inf := context.Background(), math.NaN(), math.Inf(1)
	return []try{
		absurd[any](sluice, func(r any) func() bool {
			var l algo.Limiter
			var err error
			switch r := r.(type) {
			case algo.Rate:
				l, err = algo.NewTokenBucket(r, algo.Burst(10))
			case string:
				var spec algo.Spec
				if spec, err = algo.Parse(r + " burst 10"); err == nil {
					l, err = spec.New()
				}
			}
			if err != nil {
				return nil
			}
			return acquiring(l).of("")
		}, algo.PerSecond(0), algo.PerSecond(-1), algo.Per(1, 0), algo.Per(1, -time.Second), algo.PerSecond(math.MaxInt64),
			algo.Per(math.MinInt64, math.MinInt64), "NaN/s", "Inf/s", "-1/s", "0/s", "1e400/s"),
		absurd("x/time/rate", func(r float64) func() bool { return rate.NewLimiter(rate.Limit(r), 10).Allow }, nan, 0, -1),
		absurd("uber", func(r int) func() bool {
			l := uber.New(r)
			return func() bool { l.Take(); return true }
		}, 0, -1),
		absurd("juju", func(r float64) func() bool {
			b := ratelimit.NewBucketWithRate(r, 10)
			return func() bool { return b.TakeAvailable(1) == 1 }
		}, nan, 0, -1, inf),
		absurd("throttled", func(n int) func() bool {
			l, err := throttled.NewGCRARateLimiterCtx(algo.Must(memstore.NewCtx(0)), throttled.RateQuota{MaxRate: throttled.PerSec(n), MaxBurst: 9})
			if err != nil {
				return nil
			}
			return throttledAsk(l).of("")
		}, 0, -1, math.MaxInt),
		absurd("ulule", func(text string) func() bool {
			r, err := ulule.NewRateFromFormatted(text)
			if err != nil {
				return nil
			}
			return ululeAsk(ulule.New(memory.NewStore(), r)).of("")
		}, "NaN-S", "0-S", "-1-S", "Inf-S"),
		absurd("httprate", func(q quota) func() bool {
			h := handled(httprate.LimitBy(q.units, q.period, httprate.Key("k")))
			return func() bool { return h(nil) == http.StatusOK }
		}, quota{0, time.Second}, quota{-1, time.Second}, quota{10, 0}, quota{10, -time.Second}),
		absurd("tollbooth", func(r float64) func() bool {
			l := tollbooth.NewLimiter(r, nil).SetBurst(10)
			return func() bool { return tollbooth.LimitByKeys(l, []string{"k"}) == nil }
		}, nan, 0, -1, inf),
		// A zero means the default, 1 a second; nothing else fits the types but a negative interval.
		absurd("go-limiter", func(q quota) func() bool {
			s := algo.Must(memorystore.New(&memorystore.Config{Tokens: uint64(q.units), Interval: q.period}))
			return func() bool {
				_, _, _, ok, err := s.Take(ctx, "k")
				return ok && err == nil
			}
		}, quota{0, time.Hour}, quota{10, -time.Hour}),
	}
}

func (q quota) String() string { return fmt.Sprintf("%d in %v", q.units, q.period) }

// absurd asks 1000 times at each of the rates. Holding means an error, for which make returns nil,
// or a limit that still admits no more than its burst of 10.
func absurd[R any](library string, make func(R) func() bool, rates ...R) try {
	return try{library, func() outcome {
		var said []string
		refused, holds := 0, true
		for _, r := range rates {
			o := guarded(func() outcome {
				ask := make(r)
				if ask == nil {
					refused++
					return outcome{"", true}
				}
				return atMost(10, count(1000, ask), 1000)
			})
			if o.figure != "" {
				said = append(said, fmt.Sprint(r)+": "+o.figure)
			}
			holds = holds && o.holds
		}
		if refused > 0 {
			said = append(said, fmt.Sprintf("%d of %d refused with an error", refused, len(rates)))
		}
		return outcome{strings.Join(said, "; "), holds}
	}}
}
