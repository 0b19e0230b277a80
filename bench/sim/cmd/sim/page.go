package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/sluice-go/sluice/bench/sim"
)

const intro = `The models are described in the documentation of bench/sim. Each figure is the median of %d
seeds, with the worst behind the slash. Goodput is the share of answers within the SLO: of the
capacity while the load is above it, else of the load; possible is what the cost of rejections
leaves. Needless is the share rejected in calm times, before and after. Converged and recovered:
seconds until goodput was .93 of the possible one, and until 95 %% were answered within the SLO.
"optimum" is the best fixed limit, found by search; "queued" and "trial" are gates on the number
of runnable goroutines.
`

// write prints for each strategy in how many scenarios it reached all targets, and then a line
// for each of them in each scenario.
func write(to io.Writer, tables []table, seeds int) {
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	defer func() { _ = out.Flush() }()
	line := func(cells ...any) {
		_, _ = fmt.Fprintln(out, strings.TrimSuffix(fmt.Sprintf(strings.Repeat("%v\t", len(cells)), cells...), "\t"))
	}
	_, _ = fmt.Fprintf(out, intro, seeds)
	line("\nstrategy", "all targets reached", "lowest goodput of the possible", "where")
	for _, v := range verdicts(tables) {
		line(v.strategy, fmt.Sprintf("%d of %d", v.met, v.all), fmt.Sprintf("%.3f", v.worst), v.where)
	}
	for _, t := range tables {
		line("\n" + t.Title)
		line("scenario", "strategy", "goodput", "possible", "p99, s", "needless before", "after", "converged", "recovered", "misses")
		for _, r := range t.rows {
			for i := range r.cells {
				s := &r.cells[i]
				name := s.Strategy
				if name == "optimum" {
					name = fmt.Sprintf("optimum %d", r.optimum)
				}
				line(r.scenario.ID, name, both(s.Goodput), fmt.Sprintf("%.3f", s.Possible), both(s.P99), both(s.Needless), both(s.After),
					both(s.Converged), both(s.Recovered), misses(s))
			}
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
		for _, r := range t.rows {
			for i := range r.cells {
				s := &r.cells[i]
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
					v.worst, v.where = got, r.scenario.ID
				}
			}
		}
	}
	return all
}

// misses are the kinds of target that were missed.
func misses(s *sim.Summary) string {
	var all []string
	for _, m := range s.Misses() {
		all = append(all, m.What)
	}
	return strings.Join(all, "; ")
}

func both(f sim.Figure) string { return fmt.Sprintf("%.3g/%.3g", f.Median, f.Worst) }
