package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/RussellLuo/slidingwindow"
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

// spender asks one library for n units of one key and reports whether they were
// admitted. The limit is 10 an hour, all at once if they like.
type spender struct {
	library string
	make    func() func(n int) bool
}

// spenders are the libraries whose cost is a signed number.
func spenders() []spender {
	ctx := context.Background()
	return []spender{
		{sluice, func() func(int) bool {
			l := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
			return func(n int) bool {
				lease, err := l.Acquire(ctx, "k", int64(n))
				return err == nil && lease.Allowed
			}
		}},
		{"x/time/rate", func() func(int) bool {
			l := rate.NewLimiter(rate.Every(6*time.Minute), 10)
			return func(n int) bool { return l.AllowN(time.Now(), n) }
		}},
		{"slidingwindow", func() func(int) bool {
			l, _ := slidingwindow.NewLimiter(time.Hour, 10, func() (slidingwindow.Window, slidingwindow.StopFunc) {
				return slidingwindow.NewLocalWindow()
			})
			return func(n int) bool { return l.AllowN(time.Now(), int64(n)) }
		}},
		{"juju", func() func(int) bool {
			b := ratelimit.NewBucket(6*time.Minute, 10)
			return func(n int) bool { _, ok := b.TakeMaxDuration(int64(n), 0); return ok }
		}},
		{"throttled", func() func(int) bool {
			l := newThrottled(throttled.PerHour(10), 9, 0)
			return func(n int) bool {
				limited, _, err := l.RateLimitCtx(ctx, "k", n)
				return err == nil && !limited
			}
		}},
		{"ulule", func() func(int) bool {
			l := ulule.New(memory.NewStore(), ulule.Rate{Period: time.Hour, Limit: 10})
			return func(n int) bool {
				c, err := l.Increment(ctx, "k", int64(n))
				return err == nil && !c.Reached
			}
		}},
		{"httprate", func() func(int) bool {
			h := handled(httprate.LimitBy(10, time.Hour, httprate.Key("k")))
			return func(n int) bool {
				return h(func(r *http.Request) *http.Request {
					return r.WithContext(httprate.WithIncrement(r.Context(), n))
				}) == http.StatusOK
			}
		}},
	}
}

func newThrottled(r throttled.Rate, burst, keys int) *throttled.GCRARateLimiterCtx {
	return must(throttled.NewGCRARateLimiterCtx(must(memstore.NewCtx(keys)),
		throttled.RateQuota{MaxRate: r, MaxBurst: burst}))
}

// negativeCost spends everything and asks for less than nothing, ten times.
func negativeCost() attack {
	a := attack{id: "negative-cost", title: "A negative cost mints",
		does:  "Limit 10 an hour. Ten times: ask 10 times for 1, then once for -1000.",
		holds: "at most 10 of the 100 asked for are admitted"}
	for _, s := range spenders() {
		a.tries = append(a.tries, try{s.library, func() outcome {
			spend, got := s.make(), 0
			for range 10 {
				got += count(10, func() bool { return spend(1) })
				spend(-1000)
			}
			return atMost(10, got, 100)
		}})
	}
	return a
}

// hugeCost asks for costs that overflow when multiplied by the price of a unit,
// or added to the spent units.
func hugeCost() attack {
	var costs []int
	for shift := 31; shift < 63; shift++ {
		costs = append(costs, 1<<shift, 1<<shift+1)
	}
	for k := range 10 {
		costs = append(costs, math.MaxInt64-k)
	}
	a := attack{id: "huge-cost", title: "A cost near 2^63 wraps around",
		does:  fmt.Sprintf("Limit 10 an hour, 1 spent. Ask for %d costs from 2^31 to 2^63-1.", len(costs)),
		holds: "none is admitted"}
	for _, s := range spenders() {
		a.tries = append(a.tries, try{s.library, func() outcome {
			spend, got := s.make(), 0
			spend(1)
			for _, n := range costs {
				if spend(n) {
					got++
				}
			}
			return atMost(0, got, len(costs))
		}})
	}
	return a
}

// absurd is a rate that no limit can mean. make returns nil if it is refused
// with an error, and else asks for one unit.
type absurd struct {
	rate string
	make func() func() bool
}

// judge asks 1000 times at each absurd rate. Holding means an error, or a limit
// that still admits no more than its burst of 10.
func judge(rates ...absurd) outcome {
	var said []string
	refused, holds := 0, true
	for _, r := range rates {
		o := guarded(func() outcome {
			ask := r.make()
			if ask == nil {
				refused++
				return outcome{"", true}
			}
			return atMost(10, count(1000, ask), 1000)
		})
		if o.figure != "" {
			said = append(said, r.rate+": "+o.figure)
		}
		holds = holds && o.holds
	}
	if refused > 0 {
		said = append(said, fmt.Sprintf("%d of %d refused with an error", refused, len(rates)))
	}
	return outcome{strings.Join(said, "; "), holds}
}

func absurdRates() attack {
	return attack{id: "absurd-rates", title: "NaN, zero, negative and infinite rates",
		does:  "Make a limiter with burst 10 and each rate that its types can express, and ask 1000 times. (An infinite rate is left out where it is documented to mean no limit.)",
		holds: "an error, or at most 10 admitted; no panic and no freedom",
		tries: []try{
			{sluice, sluiceRates}, {"x/time/rate", xtimeRates}, {"uber", uberRates}, {"juju", jujuRates},
			{"throttled", throttledRates}, {"ulule", ululeRates}, {"httprate", httprateRates},
			{"tollbooth", tollboothRates}, {"go-limiter", golimiterRates},
		}}
}

func sluiceRates() outcome {
	var rates []absurd
	for _, r := range []algo.Rate{
		algo.PerSecond(0), algo.PerSecond(-1), algo.Per(1, 0), algo.Per(1, -time.Second),
		algo.PerSecond(math.MaxInt64), algo.Per(math.MinInt64, math.MinInt64),
	} {
		rates = append(rates, absurd{r.String(), func() func() bool {
			l, err := algo.NewTokenBucket(r, algo.Burst(10))
			if err != nil {
				return nil
			}
			return func() bool { return l.Allow("", 1) }
		}})
	}
	for _, text := range []string{"NaN/s", "Inf/s", "-1/s", "0/s", "1e400/s"} {
		rates = append(rates, absurd{text, func() func() bool {
			spec, err := algo.Parse(text + " burst 10")
			if err != nil {
				return nil
			}
			l := must(spec.New())
			return func() bool {
				lease, err := l.Acquire(context.Background(), "", 1)
				return err == nil && lease.Allowed
			}
		}})
	}
	return judge(rates...)
}

func xtimeRates() outcome {
	of := func(name string, r float64) absurd {
		return absurd{name, func() func() bool { return rate.NewLimiter(rate.Limit(r), 10).Allow }}
	}
	return judge(of("NaN", math.NaN()), of("0", 0), of("-1", -1))
}

func uberRates() outcome {
	of := func(r int) absurd {
		return absurd{fmt.Sprint(r), func() func() bool {
			l := uber.New(r)
			return func() bool { l.Take(); return true }
		}}
	}
	return judge(of(0), of(-1))
}

func jujuRates() outcome {
	of := func(name string, r float64) absurd {
		return absurd{name, func() func() bool {
			b := ratelimit.NewBucketWithRate(r, 10)
			return func() bool { return b.TakeAvailable(1) == 1 }
		}}
	}
	return judge(of("NaN", math.NaN()), of("0", 0), of("-1", -1), of("+Inf", math.Inf(1)))
}

func throttledRates() outcome {
	of := func(n int) absurd {
		return absurd{fmt.Sprint(n), func() func() bool {
			l, err := throttled.NewGCRARateLimiterCtx(must(memstore.NewCtx(0)),
				throttled.RateQuota{MaxRate: throttled.PerSec(n), MaxBurst: 9})
			if err != nil {
				return nil
			}
			return func() bool {
				limited, _, err := l.RateLimitCtx(context.Background(), "", 1)
				return err == nil && !limited
			}
		}}
	}
	return judge(of(0), of(-1), of(math.MaxInt))
}

func ululeRates() outcome {
	of := func(text string) absurd {
		return absurd{text, func() func() bool {
			r, err := ulule.NewRateFromFormatted(text)
			if err != nil {
				return nil
			}
			l := ulule.New(memory.NewStore(), r)
			return func() bool {
				c, err := l.Get(context.Background(), "")
				return err == nil && !c.Reached
			}
		}}
	}
	return judge(of("NaN-S"), of("0-S"), of("-1-S"), of("Inf-S"))
}

func httprateRates() outcome {
	of := func(units int, window time.Duration) absurd {
		return absurd{fmt.Sprintf("%d in %v", units, window), func() func() bool {
			h := handled(httprate.LimitBy(units, window, httprate.Key("k")))
			return func() bool { return h(nil) == http.StatusOK }
		}}
	}
	return judge(of(0, time.Second), of(-1, time.Second), of(10, 0), of(10, -time.Second))
}

func tollboothRates() outcome {
	of := func(name string, r float64) absurd {
		return absurd{name, func() func() bool {
			l := tollbooth.NewLimiter(r, nil).SetBurst(10)
			return func() bool { return tollbooth.LimitByKeys(l, []string{"k"}) == nil }
		}}
	}
	return judge(of("NaN", math.NaN()), of("0", 0), of("-1", -1), of("+Inf", math.Inf(1)))
}

// golimiterRates: a zero means the default, 1 a second; nothing else fits the
// types but a negative interval.
func golimiterRates() outcome {
	of := func(tokens uint64, interval time.Duration) absurd {
		return absurd{fmt.Sprintf("%d in %v", tokens, interval), func() func() bool {
			s := must(memorystore.New(&memorystore.Config{Tokens: tokens, Interval: interval}))
			return func() bool {
				_, _, _, ok, err := s.Take(context.Background(), "k")
				return ok && err == nil
			}
		}}
	}
	return judge(of(0, time.Hour), of(10, -time.Hour))
}
