package main

import (
	"fmt"
	"image/color"
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

// pen is how a limiter is drawn.
type pen struct {
	limiter string
	color   color.RGBA
	width   float64
	glyph   draw.GlyphDrawer
}

// pens, in the order in which they are drawn: ours last, on top.
var pens = []pen{
	{"none", figure.Slate, 1, draw.CrossGlyph{}},
	{"aegis", figure.Orange, 1, draw.TriangleGlyph{}},
	{"failsafe", figure.Green, 1, draw.SquareGlyph{}},
	{"gozero", figure.Violet, 1, draw.RingGlyph{}},
	{"default", figure.Blue, 2, draw.CircleGlyph{}},
}

// frame is an empty plot of goodput.
func frame(title, axis string) *plot.Plot {
	p := figure.New(title, axis, "goodput / capacity")
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: .25}, {Value: .5, Label: ".5"}, {Value: .75}, {Value: 1, Label: "1"}}
	return p
}

// picture shows the goodput over the load, a panel for each handler over HTTP. Gray is the part
// of the capacity that the measured cost of rejecting leaves.
func (r results) picture(path string) error {
	var panels []*plot.Plot
	legend := plot.NewLegend()
	legend.TextStyle.Font, legend.Top, legend.Left = figure.Text(figure.Small).Font, true, true
	legend.ThumbnailWidth, legend.Padding = vg.Points(22), vg.Points(3)
	named := map[string]bool{}
	for _, s := range r.sections() {
		if s.transport != "http" {
			continue
		}
		p, err := r.panel(s, func(name string, th ...plot.Thumbnailer) {
			if !named[name] {
				legend.Add(" "+name, th...)
			}
			named[name] = true
		})
		if err != nil {
			return err
		}
		panels = append(panels, p)
	}
	if len(named) == 0 {
		return nil
	}
	return tile(path, panels, legend)
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
	legend.Draw(draw.Crop(cell(len(panels)), vg.Centimeter, 0, 0, -vg.Centimeter/2))
	return figure.Write(path, canvas)
}

// along is the position of a load on its axis.
func along(times float64) float64 { return math.Log2(times) }

// panel is one handler: the remaining capacity as an area, and a line for each limiter.
func (r results) panel(s section, name func(string, ...plot.Thumbnailer)) (*plot.Plot, error) {
	p := frame(fmt.Sprintf("%s, SLO %v", s.work, sloOf(s.work)), "load / capacity")
	left := r.ceiling(s)
	p.Y.Max = 1.1
	if len(left) > 0 {
		line, err := plotter.NewLine(left)
		if err != nil {
			return nil, err
		}
		line.FillColor, line.Color = figure.Pale, figure.Pale
		p.Add(line)
		name("left", line)
	}
	for _, pen := range pens {
		var points plotter.XYs
		for _, f := range r.of(s) {
			if f.Limiter == pen.limiter && f.Failed == "" {
				points = append(points, plotter.XY{X: along(f.Times), Y: f.Goodput})
				p.Y.Max = max(p.Y.Max, f.Goodput)
			}
		}
		if err := pen.stroke(p, points, name); err != nil {
			return nil, err
		}
	}
	var marks plot.ConstantTicks
	for _, at := range left {
		marks = append(marks, plot.Tick{Value: at.X, Label: fmt.Sprintf("%.3gx", math.Exp2(at.X))})
	}
	p.X.Tick.Marker = marks
	p.X.Min, p.X.Max, p.Y.Min = along(.75), along(11), 0
	return p, nil
}

// ceiling is the most that could be answered at each load that was measured.
func (r results) ceiling(s section) (left plotter.XYs) {
	most := map[float64]float64{}
	for _, f := range r.of(s) {
		if f.Failed == "" {
			most[f.Times] = min(f.Times, f.Left)
		}
	}
	for _, times := range slices.Sorted(maps.Keys(most)) {
		left = append(left, plotter.XY{X: along(times), Y: most[times]})
	}
	return left
}

// stroke draws one limiter, if there are points of it.
func (n pen) stroke(p *plot.Plot, points plotter.XYs, name func(string, ...plot.Thumbnailer)) error {
	if len(points) == 0 {
		return nil
	}
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = n.color, vg.Points(n.width)
	marks.Shape, marks.Color, marks.Radius = n.glyph, n.color, vg.Points(2.5)
	p.Add(line, marks)
	name(n.limiter, line, marks)
	return nil
}
