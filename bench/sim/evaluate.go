package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Figure is one number of a scenario, over several seeds.
type Figure struct{ Median, Worst float64 }

// Summary is the result of a strategy in a scenario, over several seeds. Times are in
// seconds, +Inf for an event that did not happen, NaN for one that the scenario does
// not have.
type Summary struct {
	Scenario  Scenario
	Strategy  string
	Possible  float64
	Goodput   Figure
	P99       Figure
	Needless  Figure // the share that was rejected in calm times before; in a steady load, of all
	After     Figure // the share that was rejected in calm times afterwards
	Converged Figure
	Recovered Figure
}

// Evaluate runs a scenario with the seeds 1 to n.
func Evaluate(s Scenario, by Strategy, n int) (Summary, error) {
	results := make([]Result, n)
	for i := range results {
		r, err := Run(s, by, uint64(i+1))
		if err != nil {
			return Summary{}, fmt.Errorf("%s: %w", s.ID, err)
		}
		results[i] = r
	}
	highest := func(f func(Result) float64) Figure { return figure(results, f, true) }
	sum := Summary{
		Scenario: s, Strategy: by.Name, Possible: results[0].Possible,
		Goodput:   figure(results, func(r Result) float64 { return r.Goodput }, false),
		P99:       highest(func(r Result) float64 { return r.P99.Seconds() }),
		Needless:  highest(func(r Result) float64 { return r.Before }),
		After:     highest(func(r Result) float64 { return r.After }),
		Converged: highest(func(r Result) float64 { return seconds(r.Converged) }),
		Recovered: highest(func(r Result) float64 { return seconds(r.Recovered) }),
	}
	if s.Steady() {
		none := Figure{math.NaN(), math.NaN()}
		sum.After, sum.Converged, sum.Recovered = none, none, none
	}
	return sum, nil
}

func seconds(d time.Duration) float64 {
	if d == Unreached {
		return math.Inf(1)
	}
	return d.Seconds()
}

// figure is the median and the worst of f.
func figure(results []Result, f func(Result) float64, highIsBad bool) Figure {
	all := make([]float64, len(results))
	for i, r := range results {
		all[i] = f(r)
	}
	slices.Sort(all)
	worst := all[0]
	if highIsBad {
		worst = all[len(all)-1]
	}
	return Figure{all[len(all)/2], worst}
}

const (
	wantShare   = 0.93 // of the possible goodput
	wantRejects = 0.01 // in calm times
	wantClosed  = 0.95 // of the goodput of a closed loop without a limiter
	wantWithin  = 2.0  // seconds, to converge and to recover
	pointless   = 0.05 // a goodput below which nothing is worth having
	rounding    = 1e-9 // for sums of floats
)

// Misses are the targets that the median did not reach. Where hardly anything
// is possible nothing is asked for.
func (s *Summary) Misses() (all []string) {
	if s.Possible < pointless {
		return nil
	}
	missed := func(what string, is bool) {
		if is {
			all = append(all, what)
		}
	}
	atMost := func(what string, is, most float64) { missed(what, is > most+rounding) }
	switch {
	case s.Scenario.Clients > 0:
		missed("goodput", s.Goodput.Median < wantClosed)
		return all
	case s.Scenario.Steady():
		atMost("needless rejections", s.Needless.Median, wantRejects)
		return all
	}
	target := s.Scenario.Target
	missed("goodput", s.Goodput.Median < cmp.Or(target.Goodput, wantShare*s.Possible)-rounding)
	atMost("p99", s.P99.Median, cmp.Or(target.P99, s.Scenario.SLO).Seconds())
	atMost("needless rejections before", s.Needless.Median, wantRejects)
	atMost("needless rejections after", s.After.Median, wantRejects)
	atMost("seconds to converge", s.Converged.Median, wantWithin)
	atMost("seconds to recover", s.Recovered.Median, wantWithin)
	return all
}

// mostInCells is about how many requests a cell has.
const mostInCells = 60000

// Cells are all scenarios, shortened, with Default.
func Cells() (all []Summary, err error) {
	seen := map[string]bool{}
	for _, g := range Groups() {
		for _, s := range g.Scenarios {
			if seen[s.ID] {
				continue
			}
			seen[s.ID] = true
			sum, err := Evaluate(s.shorten(mostInCells), Strategies()[0], 1)
			if err != nil {
				return nil, err
			}
			all = append(all, sum)
		}
	}
	return all, nil
}

// Share is the worst goodput, over the possible one; 1 where hardly anything is possible.
func (s *Summary) Share() float64 {
	if s.Possible < pointless {
		return 1
	}
	return s.Goodput.Worst / s.Possible
}
