package algo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// twoQuotas is the bound of a fixed window: a window of length w touches at
// most 2 + w/period of its windows.
func twoQuotas(r algo.Rate, w time.Duration) int64 {
	return r.Count * (2 + int64(w/r.Period))
}

// anyWindow is the bound of the strict windows: a quota in any window that is
// shorter than the period, and another for each further period.
func anyWindow(r algo.Rate, w time.Duration) int64 {
	return r.Count * (1 + int64(w/r.Period))
}

// few bounds a rate by what a log keeps.
func few(r algo.Rate) algo.Rate { return algo.Rate{Count: min(r.Count, 1000), Period: r.Period} }

// conforming has the bound of every algorithm, by its text without the rate. at fits the rest
// to the rate that the kit tries.
var conforming = map[string]struct {
	algotest.Bound
	at func(s *algo.Spec)
}{
	"token-bucket": {Bound: algotest.Bound{Units: algotest.BurstPlusRate}},
	"leaky-bucket": {Bound: algotest.Bound{Units: algotest.BurstPlusRate}},
	"pacer queue 0": {algotest.Bound{Units: algotest.BurstPlusRate}, func(s *algo.Spec) {
		s.Slack = s.Rate.Count - 1 // as much as a bucket has burst, and no line
	}},
	"nginx nodelay": {algotest.Bound{Units: algotest.BurstPlusRate}, func(s *algo.Spec) { s.Burst = s.Rate.Count - 1 }},
	"smooth-bursty": {algotest.Bound{PayForward: true, Units: func(r algo.Rate, w time.Duration) int64 {
		return algotest.BurstPlusRate(r, w) + 4 // the kit spends at most 4 units at once
	}}, func(s *algo.Spec) { s.Burst = s.Rate.Count }},
	"smooth-warming-up": {algotest.Bound{PayForward: true, Strict: true, Units: func(r algo.Rate, w time.Duration) int64 {
		return algotest.BurstPlusRate(r, w) - r.Count + 4
	}}, func(s *algo.Spec) { s.Warmup = s.Rate.Period / 2 }},
	"fixed-window keys 16":                                        {Bound: algotest.Bound{Units: twoQuotas}},
	"fixed-window keys 16 offset 123.456789ms":                    {Bound: algotest.Bound{Units: twoQuotas}},
	"fixed-window keys 16 aligned 2020-01-01T00:00:00.000098765Z": {Bound: algotest.Bound{Units: twoQuotas}},
	"sliding-window keys 16": {Bound: algotest.Bound{Strict: true, Units: func(r algo.Rate, w time.Duration) int64 {
		return twoQuotas(r, w) - 1
	}}},
	"sliding-window keys 16 cells 1":  {Bound: algotest.Bound{Units: anyWindow, Strict: true}},
	"sliding-window keys 16 cells 7":  {Bound: algotest.Bound{Units: anyWindow, Strict: true}},
	"sliding-window keys 16 cells 10": {Bound: algotest.Bound{Units: anyWindow, Strict: true}},
	"sliding-log keys 16": {algotest.Bound{Strict: true, Units: func(r algo.Rate, w time.Duration) int64 {
		return anyWindow(few(r), w)
	}}, func(s *algo.Spec) { s.Rate = few(s.Rate) }},
	"strict keys 16": {algotest.Bound{Units: anyWindow, Strict: true}, func(s *algo.Spec) { s.Burst = s.Rate.Count }},
	"strict keys 16 of twice the burst": {algotest.Bound{Strict: true, Units: func(r algo.Rate, w time.Duration) int64 {
		return 2 * anyWindow(r, w)
	}}, func(s *algo.Spec) {
		s.Burst = s.Rate.Count
		s.Rate.Count *= 2
	}},
}

// TestEveryAlgorithmConforms runs the conformance kit.
func TestEveryAlgorithmConforms(t *testing.T) {
	missing := map[string]bool{}
	for _, name := range cases.Algorithms() {
		missing[name] = true
	}
	for text, c := range conforming {
		name, options, _ := strings.Cut(text, " ")
		delete(missing, name)
		options, _, _ = strings.Cut(options, " of ")
		t.Run(text, func(t *testing.T) {
			algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
				s := algo.Must(algo.Parse(name + " 1/h " + options))
				s.Rate = r
				if c.at != nil {
					c.at(&s)
				}
				l, err := s.New(opts...)
				if name == "smooth-bursty" { // it saves its burst up
					time.Sleep(r.Period + time.Duration(r.Count))
				}
				return l, err
			}, c.Bound)
		})
	}
	for name := range missing {
		t.Errorf("%s: add its bound above", name)
	}
}
