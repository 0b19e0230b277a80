package main

import (
	"fmt"
	"image/color"
	"path/filepath"
	"regexp"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/sluice-go/sluice/bench/figure"
	"github.com/sluice-go/sluice/bench/sim"
)

// colours of the strategies, in the order in which they are drawn.
var colours = map[string]color.RGBA{
	"none":         figure.Grey,
	"trial":        figure.Slate,
	"BBR":          figure.Blue,
	"CompatKratos": figure.Brown,
	"Gradient2":    figure.Orange,
	"Vegas":        figure.Green,
	"AIMD":         figure.Violet,
	"RunQueue":     figure.Cyan,
	"Default":      figure.Red,
}

// draw writes a picture for each scenario on the usual number of cores, of the
// first seed.
func draw(dir string, only *regexp.Regexp) error {
	for _, g := range sim.Groups()[:4] {
		for _, s := range g.Scenarios {
			if s.Steady() || !only.MatchString(s.ID) {
				continue
			}
			if err := drawScenario(dir, s); err != nil {
				return fmt.Errorf("%s: %w", s.ID, err)
			}
		}
	}
	return nil
}

// line is a strategy's run over time.
type line struct {
	name  string
	trace *sim.Trace
}

func drawScenario(dir string, s sim.Scenario) error {
	all := []sim.Strategy{sim.None()}
	if _, process := s.Model.(sim.GoScheduler); process {
		all = append(all, sim.Trial())
	}
	var lines []line
	for _, by := range append(all, sim.Strategies()...) {
		r, err := sim.Run(s, by, 1, true)
		if err != nil {
			return err
		}
		lines = append(lines, line{by.Name, r.Trace})
	}
	goodput, err := panel(s.About+": goodput / capacity", lines, false, func(t *sim.Trace) plotter.XYs {
		return values(t.Goodput)
	})
	if err != nil {
		return err
	}
	goodput.Y.Min, goodput.Y.Max = 0, 1.25
	goodput.Legend.Top, goodput.Legend.Left = false, false
	p99, err := panel(fmt.Sprintf("p99 of the admitted, s (SLO %v)", s.SLO), lines, true, func(t *sim.Trace) plotter.XYs {
		return points(t.P99, func(d time.Duration) float64 { return d.Seconds() })
	})
	if err != nil {
		return err
	}
	limit, err := panel("limit", lines, true, func(t *sim.Trace) plotter.XYs {
		return points(seconds(t.Limits), func(n int) float64 { return float64(n) })
	})
	if err != nil {
		return err
	}
	return figure.Stack(filepath.Join(dir, s.ID+".svg"), 5.5*vg.Centimeter, goodput, p99, limit)
}

// seconds is one of ten: the limit at each full second. No limit is 0.
func seconds(limits []int) (each []int) {
	for i := 0; i < len(limits); i += 10 {
		n := limits[i]
		if n >= noLimit {
			n = 0
		}
		each = append(each, n)
	}
	return each
}

const noLimit = 1 << 20 // above, a limit is none

// values is one point for each second.
func values(all []float64) plotter.XYs {
	xys := make(plotter.XYs, len(all))
	for i, v := range all {
		xys[i] = plotter.XY{X: float64(i), Y: v}
	}
	return xys
}

// points leaves out zeros: no answer, or no limit.
func points[T comparable](values []T, y func(T) float64) plotter.XYs {
	var zero T
	xys := make(plotter.XYs, 0, len(values))
	for i, v := range values {
		if v != zero {
			xys = append(xys, plotter.XY{X: float64(i), Y: y(v)})
		}
	}
	return xys
}

// panel is one of the three plots.
func panel(title string, lines []line, logarithmic bool, of func(*sim.Trace) plotter.XYs) (*plot.Plot, error) {
	p := figure.New(title, "", "")
	p.Title.TextStyle.Font.Size = figure.Small
	if logarithmic {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	p.Legend.Top, p.Legend.Left, p.Legend.ThumbnailWidth = true, true, vg.Points(12)
	drawn := 0
	for _, l := range lines {
		xys := of(l.trace)
		if len(xys) == 0 {
			continue
		}
		c, err := plotter.NewLine(xys)
		if err != nil {
			return nil, err
		}
		c.Color, c.Width = colours[l.name], vg.Points(1)
		p.Add(c)
		p.Legend.Add(l.name, c)
		drawn++
	}
	if drawn == 0 { // a logarithmic axis of nothing cannot be drawn
		p.Y.Scale, p.Y.Tick.Marker = plot.LinearScale{}, plot.DefaultTicks{}
	} else if logarithmic && p.Y.Min == p.Y.Max {
		p.Y.Min, p.Y.Max = p.Y.Min/2, p.Y.Max*2
	}
	if len(lines) > 0 { // all three have the same axis
		p.X.Min, p.X.Max = 0, float64(len(lines[0].trace.Goodput))
	}
	return p, nil
}
