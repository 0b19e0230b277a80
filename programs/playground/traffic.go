package main

import (
	"math/rand/v2"
	"time"
)

// arrival is one request of the traffic.
type arrival struct {
	at   time.Duration // since the traffic began
	user int
	work time.Duration // how long its handler will take
}

// load is a shape of traffic. It repeats every period, and says how many times
// the chosen rate arrives at each instant of it.
type load struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	About   string `json:"about"`
	period  time.Duration
	times   func(at time.Duration) float64
	poisson bool                              // arrivals at random instead of evenly spaced
	skewed  bool                              // few users send most
	work    func(time.Duration) time.Duration // nil: usualWork
	retries int                               // how often a denied request comes back
	preset  settings
}

// within is high from begin until end of each period, and low otherwise.
func within(begin, end time.Duration, high, low float64) func(time.Duration) float64 {
	return func(at time.Duration) float64 {
		if begin <= at && at < end {
			return high
		}
		return low
	}
}

const (
	usualWork = 50 * time.Millisecond
	slowWork  = 2 * time.Second
	backOff   = 200 * time.Millisecond // between a denial and the next try of a storm
)

func slowlyAtTimes(at time.Duration) time.Duration {
	if at >= 3*time.Second && at < 7*time.Second {
		return slowWork
	}
	return usualWork
}

// loads are the shapes to choose from. A preset of 0 leaves a value as it is.
var loads = []load{
	{
		Name: "steady", Title: "Steady", About: "evenly spaced requests",
		period: time.Second, times: within(0, 0, 0, 1),
		preset: settings{Rate: 30, Users: 1, Limit: 20, Burst: 20},
	},
	{
		Name: "burst", Title: "Burst", About: "every 4.2 s, two seconds' worth of requests within 0.2 s; one burst in five is on the edge of a window. A quarter of the rate in between",
		period: 4200 * time.Millisecond, times: within(700*time.Millisecond, 900*time.Millisecond, 10, 0.25),
		preset: settings{Rate: 30, Users: 1, Limit: 20, Burst: 12},
	},
	{
		Name: "spike", Title: "Spike", About: "every 10 s, three seconds at four times the rate; half the rate in between",
		period: 10 * time.Second, times: within(time.Second, 4*time.Second, 4, 0.5),
		preset: settings{Rate: 20, Users: 1, Limit: 20, Burst: 20},
	},
	{
		Name: "users", Title: "Many users", About: "requests at random, most of them from a few users; each user has a limit of his own",
		period: time.Second, times: within(0, 0, 0, 1), poisson: true, skewed: true,
		preset: settings{Rate: 200, Users: 100, Limit: 5, Burst: 10},
	},
	{
		Name: "slow", Title: "Slow handler", About: "evenly spaced requests; for 4 s in every 10 each takes 2 s instead of 50 ms, which only a limit in flight can see",
		period: 10 * time.Second, times: within(0, 0, 0, 1), work: slowlyAtTimes,
		preset: settings{Rate: 40, Users: 1, Limit: 50, Burst: 20},
	},
	{
		Name: "retry", Title: "Retry storm", About: "every 8 s, one second at four times the rate; denied clients try again every 200 ms, five times",
		period: 8 * time.Second, times: within(time.Second, 2*time.Second, 4, 0.6), retries: 5,
		preset: settings{Rate: 30, Users: 1, Limit: 20, Burst: 10},
	},
}

func loadNamed(name string) (load, bool) {
	for _, l := range loads {
		if l.Name == name {
			return l, true
		}
	}
	return load{}, false
}

// traffic is a sequence of arrivals: the same one for the same settings.
type traffic struct {
	load
	rate  float64
	users int
	at    time.Duration
	owed  float64 // of an arrival, so far
	rnd   *rand.Rand
	who   *rand.Zipf
}

// step is how finely the rate of a traffic is followed.
const step = time.Millisecond

func newTraffic(l load, rate, users int) *traffic {
	t := &traffic{load: l, rate: float64(rate), users: users, rnd: rand.New(rand.NewPCG(1, 2))}
	if l.skewed && users > 1 {
		t.who = rand.NewZipf(t.rnd, 1.3, 2, uint64(users-1))
	}
	return t
}

// next is the arrival after the last one.
func (t *traffic) next() arrival {
	need := 1.0
	if t.poisson {
		need = t.rnd.ExpFloat64()
	}
	for t.owed < need {
		t.owed += t.rate * t.times(t.at%t.period) * step.Seconds()
		t.at += step
	}
	t.owed -= need
	a := arrival{at: t.at, user: t.user(), work: usualWork}
	if t.work != nil {
		a.work = t.work(t.at % t.period)
	}
	return a
}

func (t *traffic) user() int {
	switch {
	case t.who != nil:
		return int(t.who.Uint64())
	case t.users > 1:
		return t.rnd.IntN(t.users)
	}
	return 0
}
