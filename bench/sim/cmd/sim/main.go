// Sim plays all scenarios of the simulator with all strategies of package adaptive and
// prints the results as tables, beside the targets.
//
//	go run ./sim/cmd/sim [-only REGEXP]
//
// The same seeds give the same output, except where package adaptive itself is random (Vegas).
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sluice-go/sluice/bench/sim"
)

func main() {
	only := flag.String("only", "", "only the scenarios whose name matches, such as ^(A|C|go-)")
	flag.Parse()
	if err := run(*only); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// seeds is the number of runs for each strategy in each scenario.
const seeds = 5

func run(only string) error {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	var tables []table
	for _, g := range sim.Groups() {
		start := time.Now()
		t := table{title: g.Title}
		for _, s := range g.Scenarios {
			if !chosen.MatchString(s.ID) {
				continue
			}
			for _, by := range append([]sim.Strategy{sim.None()}, sim.Strategies()...) {
				sum, err := sim.Evaluate(s, by, seeds)
				if err != nil {
					return err
				}
				t.rows = append(t.rows, sum)
			}
		}
		if len(t.rows) > 0 {
			tables = append(tables, t)
			fmt.Fprintf(os.Stderr, "%s: %v\n", g.Title, time.Since(start).Round(time.Second))
		}
	}
	write(tables)
	return nil
}

// table is a group with its results.
type table struct {
	title string
	rows  []sim.Summary
}

const intro = `The models are described in the documentation of bench/sim. Each figure is the median of %d
seeds, with the worst behind the slash. Goodput is the share of answers within the SLO: of the
capacity while the load is above it, else of the load; possible is what the cost of rejections
leaves. Needless is the share rejected in calm times, before and after. Converged and recovered:
seconds until goodput was .93 of the possible one, and until 95 %% were answered within the SLO.
`

// write prints for each strategy in how many scenarios it reached all targets, and then a line
// for each of them in each scenario.
func write(tables []table) {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer func() { _ = out.Flush() }()
	line := func(cells ...any) {
		_, _ = fmt.Fprintln(out, strings.TrimSuffix(fmt.Sprintf(strings.Repeat("%v\t", len(cells)), cells...), "\t"))
	}
	_, _ = fmt.Fprintf(out, intro, seeds)
	line("\nstrategy", "all targets reached", "lowest goodput of the possible", "where")
	for _, v := range verdicts(tables) {
		line(v.strategy, fmt.Sprintf("%d of %d", v.met, v.all), fmt.Sprintf("%.3f", v.worst), v.where)
	}
	both := func(f sim.Figure) string { return fmt.Sprintf("%.3g/%.3g", f.Median, f.Worst) }
	for _, t := range tables {
		line("\n" + t.title)
		line("scenario", "strategy", "goodput", "possible", "p99, s", "needless before", "after", "converged", "recovered", "misses")
		for i := range t.rows {
			s := &t.rows[i]
			line(s.Scenario.ID, s.Strategy, both(s.Goodput), fmt.Sprintf("%.3f", s.Possible), both(s.P99), both(s.Needless), both(s.After),
				both(s.Converged), both(s.Recovered), strings.Join(s.Misses(), "; "))
		}
	}
}

type verdict struct {
	strategy string
	all, met int
	worst    float64
	where    string
}

// verdicts are in the order in which the strategies were met.
func verdicts(tables []table) (all []verdict) {
	for _, t := range tables {
		for i := range t.rows {
			s := &t.rows[i]
			if s.Possible < .05 {
				continue
			}
			at := slices.IndexFunc(all, func(v verdict) bool { return v.strategy == s.Strategy })
			if at < 0 {
				at, all = len(all), append(all, verdict{strategy: s.Strategy, worst: math.Inf(1)})
			}
			v := &all[at]
			if v.all++; len(s.Misses()) == 0 {
				v.met++
			}
			if got := s.Goodput.Worst / s.Possible; got < v.worst {
				v.worst, v.where = got, s.Scenario.ID
			}
		}
	}
	return all
}
