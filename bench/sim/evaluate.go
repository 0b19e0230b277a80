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
	P50, P99  Figure
	Rejected  Figure
	Needless  Figure // the share that was rejected in calm times before; in a steady load, of all
	After     Figure // the share that was rejected in calm times afterwards
	Converged Figure
	Recovered Figure
	Classes   [len(classShares)]Figure
}

// Evaluate runs a scenario with the seeds 1 to n.
func Evaluate(s Scenario, by Strategy, n int) (Summary, error) {
	results := make([]Result, n)
	for i := range results {
		r, err := Run(s, by, uint64(i+1), false)
		if err != nil {
			return Summary{}, fmt.Errorf("%s: %w", s.ID, err)
		}
		results[i] = r
	}
	lowest := func(f func(Result) float64) Figure { return figure(results, f, false) }
	highest := func(f func(Result) float64) Figure { return figure(results, f, true) }
	sum := Summary{
		Scenario: s, Strategy: by.Name, Possible: results[0].Possible,
		Goodput:   lowest(func(r Result) float64 { return r.Goodput }),
		P50:       highest(func(r Result) float64 { return r.P50.Seconds() }),
		P99:       highest(func(r Result) float64 { return r.P99.Seconds() }),
		Rejected:  highest(func(r Result) float64 { return r.Rejected }),
		Needless:  highest(func(r Result) float64 { return r.Before }),
		After:     highest(func(r Result) float64 { return r.After }),
		Converged: highest(func(r Result) float64 { return seconds(r.Converged) }),
		Recovered: highest(func(r Result) float64 { return seconds(r.Recovered) }),
	}
	for c := range sum.Classes {
		sum.Classes[c] = lowest(func(r Result) float64 { return r.Classes[c] })
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
	slices.SortFunc(all, cmp.Compare[float64])
	worst := all[0]
	if highIsBad {
		worst = all[len(all)-1]
	}
	return Figure{all[len(all)/2], worst}
}

// Miss is a target that was not reached by the median.
type Miss struct {
	What     string
	Is, Want float64
}

const (
	wantShare   = 0.93 // of the possible goodput
	wantRejects = 0.01 // in calm times
	wantClosed  = 0.95 // of the goodput of a closed loop without a limiter
	wantWithin  = 2.0  // seconds, to converge and to recover
	pointless   = 0.05 // a goodput below which nothing is worth having
	rounding    = 1e-9 // for sums of floats
)

// Wants are the targets of a scenario.
func (s *Scenario) Wants(possible float64) (goodput, p99 float64) {
	goodput, p99 = s.Target.Goodput, s.Target.P99.Seconds()
	if goodput == 0 {
		goodput = wantShare * possible
	}
	if p99 == 0 {
		p99 = s.SLO.Seconds()
	}
	return goodput, p99
}

// Misses are the targets that the median did not reach. Where hardly anything
// is possible nothing is asked for.
func (s *Summary) Misses() (all []Miss) {
	goodput, p99 := s.Scenario.Wants(s.Possible)
	if s.Possible < pointless {
		return nil
	}
	atMost := func(what string, is, want float64) {
		if is > want+rounding {
			all = append(all, Miss{what, is, want})
		}
	}
	if s.Scenario.Clients > 0 {
		if s.Goodput.Median < wantClosed {
			all = append(all, Miss{"goodput", s.Goodput.Median, wantClosed})
		}
		return all
	}
	if s.Scenario.Steady() {
		atMost("needless rejections", s.Needless.Median, wantRejects)
		return all
	}
	if s.Goodput.Median < goodput-rounding {
		all = append(all, Miss{"goodput", s.Goodput.Median, goodput})
	}
	atMost("p99", s.P99.Median, p99)
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
