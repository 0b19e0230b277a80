package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// algorithm is one way to keep a limit, as text and as Go. {limit} and {burst} are numbers.
type algorithm struct{ name, title, about, spec, code string }

var algorithms = []algorithm{
	{"token-bucket", "Token bucket", "a burst, then the rate", "{limit}/s burst {burst}", "algo.NewTokenBucket(algo.PerSecond({limit}), algo.Burst({burst}))"},
	{"leaky-bucket", "Leaky bucket", "the same, as a meter", "leaky-bucket {limit}/s burst {burst}", "algo.NewLeakyBucket(algo.PerSecond({limit}), algo.Burst({burst}))"},
	{"pacer", "Pacer", "evenly spaced, waits up to 1 s", "pacer {limit}/s wait 1s", "algo.NewPacer(algo.PerSecond({limit}), algo.MaxWait(time.Second))"},
	{"nginx", "nginx limit_req", "a burst waits for the rate", "nginx {limit}/s burst {burst}", "classic.NewNginx(algo.PerSecond({limit}), {burst}, 0)"},
	{"fixed-window", "Fixed window", "all back as the second turns", "fixed-window {limit}/s", "algo.NewFixedWindow(algo.PerSecond({limit}))"},
	{"sliding-window", "Sliding window, 2 counters", "smoothed, not exact", "sliding-window {limit}/s", "algo.NewSlidingWindow(algo.PerSecond({limit}))"},
	{"sliding-cells", "Sliding window, 10 cells", "exact, a tenth late", "sliding-window {limit}/s cells 10", "algo.NewSlidingWindow(algo.PerSecond({limit}), algo.Cells(10))"},
	{"sliding-log", "Sliding log", "exact in any second", "sliding-log {limit}/s", "algo.NewSlidingLog(algo.PerSecond({limit}))"},
	{"strict", "Strict", "exact in one word, half the rate", "strict {limit}/s", "algo.Spec{Algorithm: \"strict\", Rate: algo.PerSecond({limit})}.New()"},
	{"smooth-bursty", "Guava SmoothBursty", "waits for the one before, up to 1 s", "smooth-bursty {limit}/s burst {burst} wait 1s", "classic.NewSmoothBursty(algo.PerSecond({limit}), time.Second, algo.Burst({burst}))"},
	{"warming-up", "Guava SmoothWarmingUp", "slow from cold, waits up to 1 s", "smooth-warming-up {limit}/s warmup 3s wait 1s", "classic.NewSmoothWarmingUp(algo.PerSecond({limit}), 3*time.Second, 3, time.Second)"},
}

// settings are the parameters of the page. Values out of range are brought into it.
type settings struct {
	Load  string `json:"load"`
	Rate  int    `json:"rate"`  // requests a second
	Limit int    `json:"limit"` // requests a second
	Burst int    `json:"burst"`
}

func (s settings) clamped() settings {
	within := func(v, most int) int { return max(1, min(v, most)) }
	if loads[s.Load] == nil {
		s.Load = "burst"
	}
	return settings{s.Load, within(s.Rate, 200), within(s.Limit, 200), within(s.Burst, 200)}
}

const (
	length  = 12 * time.Second
	column  = 100 * time.Millisecond
	columns = int(length / column)
)

// loads are how many times the rate arrives at an instant.
var loads = map[string]func(at time.Duration) float64{
	"steady": func(time.Duration) float64 { return 1 },
	"burst": func(at time.Duration) float64 {
		return within(at%(4200*time.Millisecond), 700*time.Millisecond, 900*time.Millisecond, 10, .25)
	},
	"spike": func(at time.Duration) float64 { return within(at, 3*time.Second, 6*time.Second, 4, .5) },
}

// within is high from begin until end, and low otherwise.
func within(at, begin, end time.Duration, high, low float64) float64 {
	if begin <= at && at < end {
		return high
	}
	return low
}

// arrivals are evenly spaced by the rate of the instant.
func arrivals(s settings) (times []time.Duration) {
	const step = time.Millisecond
	owed := 0.0
	for at := time.Duration(0); at < length; at += step {
		for owed += float64(s.Rate) * loads[s.Load](at) * step.Seconds(); owed >= 1; owed-- {
			times = append(times, at)
		}
	}
	return times
}

// lane is the answers of an algorithm to the arrivals: counts of each column, and in total.
type lane struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	About   string `json:"about"`
	Go      string `json:"go"`
	YAML    string `json:"yaml"`
	AtOnce  []int  `json:"atOnce"`
	Delayed []int  `json:"delayed"`
	Denied  []int  `json:"denied"`
	Totals  [3]int `json:"totals"`  // at once, delayed, denied
	Densest int    `json:"densest"` // most starts in a second
}

// page is everything that the page draws.
type page struct {
	Settings settings `json:"settings"`
	Offered  []int    `json:"offered"`
	Lanes    []lane   `json:"lanes"`
}

// play sends the same arrivals to every algorithm. It runs in a bubble of
// testing/synctest, in whose virtual time sleeping takes no time.
func play(s settings) (page, error) {
	s = s.clamped()
	times := arrivals(s)
	p := page{Settings: s, Offered: make([]int, columns)}
	for _, at := range times {
		p.Offered[at/column]++
	}
	for _, a := range algorithms {
		l, err := a.play(s, times)
		if err != nil {
			return p, err
		}
		p.Lanes = append(p.Lanes, l)
	}
	return p, nil
}

func (a algorithm) play(s settings, times []time.Duration) (lane, error) {
	spec := fill(a.spec, s)
	l := lane{
		Name: a.name, Title: a.title, About: a.about, Go: fill(a.code, s),
		YAML:   "limits:\n  - name: per-client\n    key: ip\n    limit: " + spec + "\n",
		AtOnce: make([]int, columns), Delayed: make([]int, columns), Denied: make([]int, columns),
	}
	parsed, err := algo.Parse(spec)
	if err != nil {
		return l, err
	}
	limiter, err := parsed.New()
	if err != nil {
		return l, err
	}
	var starts []time.Duration
	began := time.Now()
	for _, at := range times {
		time.Sleep(time.Until(began.Add(at)))
		lease, err := limiter.Acquire(context.Background(), "key", 1)
		switch start := at + lease.Delay; {
		case err != nil:
			return l, err
		case !lease.Allowed:
			l.Denied[at/column]++
			l.Totals[2]++
		case lease.Delay > 0:
			l.Totals[1]++
			if starts = append(starts, start); start < length {
				l.Delayed[start/column]++
			}
		default:
			l.Totals[0]++
			starts = append(starts, start)
			l.AtOnce[at/column]++
		}
	}
	l.Densest = densest(starts, time.Second)
	return l, nil
}

// densest is the most starts within any window. Starts are in order: no lane overtakes.
func densest(starts []time.Duration, window time.Duration) (most int) {
	first := 0
	for i, at := range starts {
		for at-starts[first] >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

func fill(text string, s settings) string {
	return strings.NewReplacer("{limit}", strconv.Itoa(s.Limit), "{burst}", strconv.Itoa(s.Burst)).Replace(text)
}
