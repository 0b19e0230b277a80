package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/sluice-go/sluice/bench/sim"
)

const intro = `# The simulator's tables

Made by "make sim"; the models are described in the package documentation of
bench/sim. Each cell is the median of %d seeds and, in brackets, the worst.
A ↓ marks a median that misses its target.

* **Goodput** is the share of answers within the SLO: of the capacity while the
  load is above it, else of the load. **Possible** is the share that the cost of
  rejections leaves: no gate reaches more, unless it prefers short requests.
* **p99** is the 99th percentile of the admitted requests that ended during the
  overload, in milliseconds.
* **Needless** is the share of the requests rejected in calm times, at .85 of
  the capacity, in percent: before the overload / from 2 s after it.
* **Converged, recovered**: seconds from the start of the overload until the
  goodput was .93 of the possible one, and from its end until 95 %% of all
  requests were answered within the SLO, each for 2 s on end; - is never.
* "none" has no limiter. "optimum" is the best fixed limit, found by search, and
  the yardstick for the strategies. "queued" and "trial" are gates on the number
  of runnable goroutines: a fixed one of 8 per processor, and the gate of the
  first measurements in real processes.

The Go server on one core has been compared with a real process: with a gate it is
within .1 of it. The one on several cores has not. There, while a queue is never
empty, only the monitor thread polls the network, and fetches at most 128
connections every 10 ms: faster arrivals wait where no gate can reject them.

The targets: goodput at least .93 of the possible one, or as in the table; p99
within the SLO, or as in the table; at most 1 %% needless rejections; converged and
recovered within 2 s.

`

// page is the whole text.
func page(tables []table, seeds int) string {
	var b strings.Builder
	fmt.Fprintf(&b, intro, seeds)
	verdict(&b, tables)
	for _, t := range tables {
		fmt.Fprintf(&b, "## %s\n\n", t.Title)
		t.write(&b, "Goodput", true, func(s *sim.Summary) string {
			return share(s.Goodput) + mark(s, "goodput")
		})
		t.write(&b, "p99, ms", false, func(s *sim.Summary) string {
			return fmt.Sprintf("%s (%s)", millis(s.P99.Median), millis(s.P99.Worst)) + mark(s, "p99")
		})
		t.write(&b, "Needless, %: before / after", false, func(s *sim.Summary) string {
			return percent(s.Needless) + more(s, percent(s.After)) + mark(s, "needless rejections")
		})
		t.write(&b, "Converged / recovered, s", false, func(s *sim.Summary) string {
			if s.Scenario.Steady() {
				return ""
			}
			return after(s.Converged) + " / " + after(s.Recovered) + mark(s, "seconds")
		})
	}
	return b.String()
}

// verdict counts for each strategy in how many scenarios it reached all targets,
// and names the worst.
func verdict(b *strings.Builder, tables []table) {
	type count struct {
		all, met, held int
		worst          float64
		where          string
	}
	counts := map[string]*count{}
	var names []string
	for _, t := range tables {
		for _, r := range t.rows {
			for i := range r.cells {
				s := &r.cells[i]
				if s.Possible < .05 {
					continue
				}
				c := counts[s.Strategy]
				if c == nil {
					c = &count{worst: math.Inf(1)}
					counts[s.Strategy], names = c, append(names, s.Strategy)
				}
				c.all++
				if len(s.Misses()) == 0 {
					c.met++
				}
				got := s.Goodput.Worst / s.Possible
				if got >= .93 {
					c.held++
				}
				if got < c.worst {
					c.worst, c.where = got, r.scenario.ID
				}
			}
		}
	}
	fmt.Fprintf(b, "## In short\n\n| | all targets reached (median) | goodput at least .93 of the possible (worst seed) | lowest of these | where |\n|---|---|---|---|---|\n")
	for _, name := range names {
		c := counts[name]
		fmt.Fprintf(b, "| %s | %d of %d | %d | %s | %s |\n", name, c.met, c.all, c.held, three(c.worst), c.where)
	}
	b.WriteString("\n")
}

// write is one table: a row for each scenario, a column for each strategy.
func (t *table) write(b *strings.Builder, title string, head bool, cell func(*sim.Summary) string) {
	fmt.Fprintf(b, "**%s**\n\n| scenario |", title)
	if head {
		b.WriteString(" | target | possible |")
	}
	for _, n := range t.names {
		fmt.Fprintf(b, " %s |", n)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(t.names)))
	if head {
		b.WriteString("---|---|---|")
	}
	b.WriteString("\n")
	for _, r := range t.rows {
		line := fmt.Sprintf("| %s |", r.scenario.ID)
		if head {
			goodput, _ := r.scenario.Wants(r.cells[0].Possible)
			line += fmt.Sprintf(" %s | %s | %s |", r.scenario.About, three(goodput), three(r.cells[0].Possible))
		}
		some := false
		for i := range r.cells {
			text := cell(&r.cells[i])
			if head && r.cells[i].Strategy == "optimum" {
				text = fmt.Sprintf("%s at %d", text, r.optimum)
			}
			some = some || text != ""
			line += " " + text + " |"
		}
		if some {
			b.WriteString(line + "\n")
		}
	}
	b.WriteString("\n")
}

// mark is an arrow if a target of that kind was missed.
func mark(s *sim.Summary, kind string) string {
	if s.Strategy == "none" || s.Strategy == "optimum" {
		return ""
	}
	for _, m := range s.Misses() {
		if strings.HasPrefix(m.What, kind) {
			return " ↓"
		}
	}
	return ""
}

func more(s *sim.Summary, text string) string {
	if s.Scenario.Steady() {
		return ""
	}
	return " / " + text
}

func share(f sim.Figure) string { return fmt.Sprintf("%s (%s)", three(f.Median), three(f.Worst)) }

func percent(f sim.Figure) string { return fmt.Sprintf("%.1f (%.1f)", 100*f.Median, 100*f.Worst) }

func after(f sim.Figure) string { return fmt.Sprintf("%s (%s)", tenth(f.Median), tenth(f.Worst)) }

func tenth(x float64) string {
	if math.IsInf(x, 1) {
		return "-"
	}
	return fmt.Sprintf("%.1f", x)
}

// three has three digits after the point, and no zero before it.
func three(x float64) string {
	if math.IsInf(x, 1) {
		return "never"
	}
	return strings.TrimPrefix(fmt.Sprintf("%.3f", x), "0")
}

func millis(s float64) string {
	if s < .01 {
		return fmt.Sprintf("%.1f", s*1000)
	}
	return fmt.Sprintf("%.0f", s*1000)
}
