// Fairness plays the scenarios with tenants of the simulator with Default, with and without
// fair shares, and prints a table. With -out DIR it draws a picture of a flood there.
//
//	go run ./sim/cmd/fairness [-out DIR]
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/bench/figure"
	"github.com/sluice-go/sluice/bench/sim"
)

func main() {
	out := flag.String("out", "", "directory for fairness.svg; empty: none")
	flag.Parse()
	table()
	if *out != "" {
		algo.Must(0, picture(filepath.Join(*out, "fairness.svg")))
	}
}

var strategy = sim.Strategies()[0] // Default

// servers are the servers of the table: cores, processor time of a request, SLO.
var servers = []struct {
	cores    int
	cpu, slo time.Duration
}{
	{1, 100 * time.Microsecond, 100 * time.Millisecond},
	{1, 500 * time.Microsecond, 100 * time.Millisecond},
	{1, 5 * time.Millisecond, 250 * time.Millisecond},
	{1, 30 * time.Millisecond, 500 * time.Millisecond},
	{1, 100 * time.Millisecond, 1500 * time.Millisecond},
	{8, 500 * time.Microsecond, 100 * time.Millisecond},
	{8, 5 * time.Millisecond, 250 * time.Millisecond},
	{64, 5 * time.Millisecond, 250 * time.Millisecond},
	{64, 100 * time.Millisecond, 1500 * time.Millisecond},
}

const intro = `A Go server, 5 s of calm, then overload, measured from 10 s after it began, for 25 s, one seed.
Each pair is without / with fair shares; ! is a miss. least: the smallest part that a tenant got, within
the SLO, of the lesser of its demand and its weighted max-min share of all that was served (.95). Jain:
Jain's index over these parts (.98). served: the processor time of the answers within the SLO, in
capacities (.98 of that without shares). "names" shows what shares cannot do: a caller with 10 000
names has 10 000 shares.
`

func table() {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer func() { _ = out.Flush() }()
	_, _ = fmt.Fprint(out, intro)
	for _, s := range servers {
		_, _ = fmt.Fprintf(out, "\n%v of processor time, %d cores, SLO %v\t\tleast\tJain\tserved\n", s.cpu, s.cores, s.slo)
		for _, sc := range sim.Shared(s.cores, s.cpu, s.slo) {
			var f [2]sim.Fairness // without and with shares
			for i := range f {
				sc.Fair = i == 1
				f[i] = sim.Divided(algo.Must(sim.Run(sc, strategy, 1)).Tenants)
			}
			before, after := f[0], f[1]
			_, _ = fmt.Fprintf(out, "%s\t%s\t%.2f / %.2f%s\t%.3f / %.3f%s\t%.3f / %.3f%s\n", sc.ID, sc.About,
				before.Least, after.Least, mark(after.Least < .95), before.Jain, after.Jain, mark(after.Jain < .98),
				before.All, after.All, mark(after.All < .98*before.All))
		}
	}
}

func mark(missed bool) string {
	if missed {
		return " !"
	}
	return ""
}

// picture shows ten tenants, of which one begins to flood.
func picture(path string) error {
	var panels []*plot.Plot
	for _, fair := range []bool{false, true} {
		s := sim.Beginning()
		s.Fair = fair
		demand := 0.0
		for _, t := range s.Tenants[1:] {
			demand += t.Load
		}
		r, err := sim.Run(s, strategy, 1)
		if err != nil {
			return err
		}
		p := figure.New(map[bool]string{false: "Without shares", true: "With fair shares"}[fair], "seconds", "served / capacity")
		p.Y.Min, p.Y.Max = 0, 1.8 // room for the legend
		p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: .5, Label: ".5"}, {Value: 1, Label: "1"}}
		if err := add(p, r.Tenants, demand); err != nil {
			return err
		}
		panels = append(panels, p)
	}
	return figure.Stack(path, 5.5*vg.Centimeter, panels...)
}

// add draws the parts that the tenants got; the first floods, demand is the demand of the
// others together.
func add(p *plot.Plot, tenants []sim.Share, demand float64) error {
	others := make(plotter.XYs, len(tenants[0].Seconds)-1)
	first := make(plotter.XYs, len(others))
	asked := plotter.XYs{{X: 0, Y: demand}, {X: float64(len(others) - 1), Y: demand}}
	for i := range others {
		others[i].X, first[i].X = float64(i), float64(i)
		first[i].Y = tenants[0].Seconds[i]
		for _, t := range tenants[1:] {
			others[i].Y += t.Seconds[i]
		}
	}
	p.Legend.Top, p.Legend.Left = true, true
	return figure.Add(p, figure.Line{Name: "the one that floods", Points: first, Color: figure.Red, Width: 2},
		figure.Line{Name: "the nine others together", Points: others, Color: figure.Blue, Width: 2},
		figure.Line{Name: "what the nine ask for", Points: asked, Color: figure.Orange, Width: 2})
}
