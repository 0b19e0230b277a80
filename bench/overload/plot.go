package main

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/sluice-go/sluice/bench/figure"
)

// pens are the lines of limiters, in the order in which they are drawn: ours last, on top.
var pens = []figure.Line{
	{Name: "none", Color: figure.Slate, Width: 1, Glyph: draw.CrossGlyph{}},
	{Name: "aegis", Color: figure.Orange, Width: 1, Glyph: draw.TriangleGlyph{}},
	{Name: "failsafe", Color: figure.Green, Width: 1, Glyph: draw.SquareGlyph{}},
	{Name: "gozero", Color: figure.Violet, Width: 1, Glyph: draw.RingGlyph{}},
	{Name: "default", Color: figure.Blue, Width: 2, Glyph: draw.CircleGlyph{}},
}

// picture shows the goodput over the load, a panel for each handler over HTTP. Gray is the part
// of the capacity that the measured cost of rejecting leaves.
func (r results) picture(path string) error {
	var panels []*plot.Plot
	key, named := figure.New("", "", ""), map[string]bool{}
	for _, s := range r.sections() {
		lines := r.lines(s)
		if s.transport != "http" || len(lines) == 0 {
			continue
		}
		p, err := panel(s, lines)
		if err != nil {
			return err
		}
		panels = append(panels, p)
		for _, l := range lines {
			if !named[l.Name] {
				named[l.Name] = true
				if err := figure.Add(key, l); err != nil {
					return err
				}
			}
		}
	}
	if len(panels) == 0 {
		return nil
	}
	return tile(path, panels, key.Legend)
}

// tile draws the panels in two columns, and the legend after the last.
func tile(path string, panels []*plot.Plot, legend plot.Legend) error {
	const wide, tall, gap, columns = figure.Width / 2, 4.6 * vg.Centimeter, vg.Millimeter, 2
	rows := vg.Length(len(panels)/columns + 1)
	canvas := vgsvg.New(columns*wide, rows*tall)
	whole := figure.Blank(canvas)
	cell := func(i int) draw.Canvas {
		x, y := vg.Length(i%columns)*wide, (rows-1-vg.Length(i/columns))*tall
		return draw.Crop(whole, x+gap, x+wide-gap-columns*wide, y+gap, y+tall-gap-rows*tall)
	}
	for i, p := range panels {
		if i%columns > 0 {
			p.Y.Label.Text = ""
		}
		p.Draw(cell(i))
	}
	legend.Top, legend.Left = true, true
	legend.Draw(draw.Crop(cell(len(panels)), vg.Centimeter, 0, 0, -vg.Centimeter/2))
	return figure.Write(path, canvas)
}

// along is the position of a load on its axis.
func along(times float64) float64 { return math.Log2(times) }

// lines are the remaining capacity as an area, and the goodput of each limiter; none without a
// measurement.
func (r results) lines(s section) (all []figure.Line) {
	left := map[float64]float64{}
	points := map[string]plotter.XYs{}
	for _, f := range r.of(s) {
		if f.Failed == "" {
			left[f.Times] = min(f.Times, f.Left)
			points[f.Limiter] = append(points[f.Limiter], plotter.XY{X: along(f.Times), Y: f.Goodput})
		}
	}
	for _, times := range slices.Sorted(maps.Keys(left)) {
		points["left"] = append(points["left"], plotter.XY{X: along(times), Y: left[times]})
	}
	for _, l := range slices.Concat([]figure.Line{{Name: "left", Color: figure.Pale, Filled: true}}, pens) {
		if l.Points = points[l.Name]; l.Points != nil {
			all = append(all, l)
		}
	}
	return all
}

// panel draws the lines of a handler; the first has a point for each load.
func panel(s section, lines []figure.Line) (*plot.Plot, error) {
	p := figure.New(fmt.Sprintf("%s, SLO %v", s.work, sloOf(s.work)), "load / capacity", "goodput / capacity")
	if err := figure.Add(p, lines...); err != nil {
		return nil, err
	}
	p.Legend = plot.NewLegend()
	var marks plot.ConstantTicks
	for _, at := range lines[0].Points {
		marks = append(marks, plot.Tick{Value: at.X, Label: fmt.Sprintf("%.3gx", math.Exp2(at.X))})
	}
	p.X.Tick.Marker = marks
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: .25}, {Value: .5, Label: ".5"}, {Value: .75}, {Value: 1, Label: "1"}}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = along(.75), along(11), 0, max(p.Y.Max, 1.1)
	return p, nil
}
