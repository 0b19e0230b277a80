// Sim plays all scenarios of the simulator with all strategies of package adaptive and
// prints the results as tables, beside the targets.
//
//	go run ./sim/cmd/sim [-seeds N] [-only REGEXP] [-strategies REGEXP]
//
// The same seeds give the same output, except where package adaptive itself is random (Vegas).
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/sluice-go/sluice/bench/sim"
)

func main() {
	seeds := flag.Int("seeds", 5, "runs for each strategy in each scenario")
	only := flag.String("only", "", "only the scenarios whose name matches, such as ^(A|C|go-)")
	names := flag.String("strategies", "", "only the strategies whose name matches")
	flag.Parse()
	if err := run(*seeds, *only, *names); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(seeds int, only, names string) error {
	scenarios, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	strategies, err := regexp.Compile(names)
	if err != nil {
		return err
	}
	if seeds < 1 {
		return fmt.Errorf("seeds is %d, want 1 or more", seeds)
	}
	var tables []table
	for _, g := range sim.Groups() {
		start := time.Now()
		t, err := play(g, seeds, scenarios, strategies)
		if err != nil {
			return err
		}
		if len(t.rows) > 0 {
			tables = append(tables, t)
			fmt.Fprintf(os.Stderr, "%s: %v\n", g.Title, time.Since(start).Round(time.Second))
		}
	}
	write(os.Stdout, tables, seeds)
	return nil
}

// table is a group with its results.
type table struct {
	sim.Group
	rows []row
}

// row is a scenario: one summary for each strategy.
type row struct {
	scenario sim.Scenario
	optimum  int // the best fixed limit, 0: not looked for
	cells    []sim.Summary
}

func play(g sim.Group, seeds int, scenarios, strategies *regexp.Regexp) (table, error) {
	t := table{Group: g}
	for _, s := range g.Scenarios {
		if !scenarios.MatchString(s.ID) {
			continue
		}
		r := row{scenario: s}
		contestants, err := field(&r, strategies)
		if err != nil {
			return t, err
		}
		for _, by := range contestants {
			sum, err := sim.Evaluate(s, by, seeds)
			if err != nil {
				return t, err
			}
			r.cells = append(r.cells, sum)
		}
		t.rows = append(t.rows, r)
	}
	return t, nil
}

// field returns the participants of a scenario: the strategies and no limiter;
// for a Go server also the gates of the measurements, else the best fixed
// limit.
func field(r *row, strategies *regexp.Regexp) (field []sim.Strategy, err error) {
	all := []sim.Strategy{sim.None()}
	if _, process := r.scenario.Model.(sim.GoScheduler); process {
		all = append(all, sim.Queued(8), sim.Trial())
	} else if strategies.MatchString("optimum") {
		if r.optimum, err = sim.Optimum(r.scenario); err != nil {
			return nil, err
		}
		best := sim.Fixed(r.optimum)
		best.Name = "optimum"
		all = append(all, best)
	}
	for _, s := range append(all, sim.Strategies()...) {
		if strategies.MatchString(s.Name) {
			field = append(field, s)
		}
	}
	return field, nil
}
