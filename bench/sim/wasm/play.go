// Wasm is the overload of the web site's playground: the strategies of package adaptive on a
// simulated server, in a browser. The page calls sluiceOverload with settings as JSON and
// draws the result.
//
//	GOOS=js GOARCH=wasm go build -o overload.wasm ./sim/wasm
package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-go/sluice/bench/sim"
)

// settings are the inputs of the page. A value out of range is clamped.
type settings struct {
	Handler string  `json:"handler"`
	Load    float64 `json:"load"`  // capacities
	Fixed   int     `json:"fixed"` // requests in flight
}

// handlers lists the simulated handlers that a browser computes in less than a
// second.
var handlers = []string{"5ms", "30ms", "100ms", "io", "mix"}

func (s settings) clamped() settings {
	if !slices.Contains(handlers, s.Handler) {
		s.Handler = handlers[0]
	}
	return settings{s.Handler, min(max(s.Load, 1), 10), min(max(s.Fixed, 1), 200)}
}

// lane is the result of a strategy.
type lane struct {
	Name    string    `json:"name"`
	Title   string    `json:"title"`
	About   string    `json:"about"`
	Goodput []float64 `json:"goodput"` // answers in time in each second, of the capacity
	Says    string    `json:"says"`
	Kept    float64   `json:"kept"` // share of the possible goodput under overload
}

// page is everything that the page draws.
type page struct {
	Settings settings `json:"settings"`
	About    string   `json:"about"`
	From     int      `json:"from"` // second
	To       int      `json:"to"`
	Lanes    []lane   `json:"lanes"`
}

// contestant is a strategy with its words.
type contestant struct {
	title, about string
	by           sim.Strategy
}

func contestants(fixed int) []contestant {
	all := []contestant{
		{"No limit", "every request is admitted", sim.None()},
		{"Fixed", fmt.Sprintf("at most %d requests in flight", fixed), sim.Fixed(fixed)},
	}
	about := map[string]string{
		"RunQueue":  "denies by the queue in front of the processor, as Default does",
		"Gradient2": "raises and lowers the limit by response times",
		"Vegas":     "the same, by the queue that response times imply",
		"AIMD":      "one more for each answer, a tenth less after a late answer",
	}
	for _, s := range sim.Strategies() {
		if about[s.Name] != "" {
			all = append(all, contestant{s.Name, about[s.Name], s})
		}
	}
	return all
}

// play puts a server under load, once for each strategy. The same settings show the same page.
func play(s settings) (page, error) {
	s = s.clamped()
	at := 0
	for i, h := range sim.Handlers {
		if h.Name == s.Handler {
			at = i
		}
	}
	scenario := sim.Process(at, s.Load)
	p := page{Settings: s, From: int(scenario.From.Seconds()), To: int(scenario.To.Seconds()),
		About: fmt.Sprintf("One processor, which answers %.0f requests a second. An answer after %v is late; clients wait %v.",
			scenario.Capacity(), scenario.SLO, scenario.Patience)}
	for _, c := range contestants(s.Fixed) {
		r, err := sim.Run(scenario, c.by, 1)
		if err != nil {
			return p, err
		}
		p.Lanes = append(p.Lanes, lane{c.by.Name, c.title, c.about, r.Seconds, says(r), r.Goodput / r.Possible})
	}
	return p, nil
}

func says(r sim.Result) string {
	recovered := "not recovered within 15 s"
	if r.Recovered != sim.Unreached {
		recovered = fmt.Sprintf("recovered after %v", r.Recovered.Round(100*time.Millisecond))
	}
	return fmt.Sprintf("%.0f %% of the possible answers in time, %.0f %% denied, p99 %v, %s",
		100*r.Goodput/r.Possible, 100*r.Rejected, r.P99.Round(time.Millisecond), recovered)
}
