package shapes_test

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/sluice-go/sluice/bench/figure"
)

const (
	seconds = 12.0
	bin     = 0.2 // seconds
	bins    = int(seconds / bin)
	ceiling = 110      // of the axis, in units a bin
	perBin  = 50 * bin // the units of the rate
)

// drawing is the result of one shape on the arrivals.
type drawing struct {
	shape
	arrivals, starts []float64
}

// draw writes an SVG, narrow enough for two in a row.
func (d drawing) draw(path string) error {
	p, err := d.plot()
	if err != nil {
		return err
	}
	canvas := vgsvg.New(8.1*vg.Centimeter, 4.8*vg.Centimeter)
	p.Draw(vgdraw.Crop(vgdraw.New(canvas), 0, -3*vg.Millimeter, 0, 0))
	return figure.Write(path, canvas)
}

// plot draws arrivals and admitted starts in bins of 200 ms, the rate, and the bound.
func (d drawing) plot() (*plot.Plot, error) {
	p := figure.New(d.title+"\n"+d.about, "seconds", "in 200 ms")
	for _, f := range []*vg.Length{&p.Title.TextStyle.Font.Size, &p.X.Label.TextStyle.Font.Size, &p.Y.Label.TextStyle.Font.Size,
		&p.X.Tick.Label.Font.Size, &p.Y.Tick.Label.Font.Size} {
		*f = vg.Points(8.5)
	}
	asked, err := bars(d.arrivals, figure.Grey)
	if err != nil {
		return nil, err
	}
	given, err := bars(d.starts, figure.Blue)
	if err != nil {
		return nil, err
	}
	p.Add(asked, given)
	for _, l := range []struct {
		y     float64
		color color.Color
	}{{perBin, figure.Orange}, {float64(d.bound), figure.Red}} {
		level, err := plotter.NewLine(plotter.XYs{{X: 0, Y: l.y}, {X: seconds, Y: l.y}})
		if err != nil {
			return nil, err
		}
		level.Color, level.Width = l.color, vg.Points(1)
		p.Add(level)
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, seconds, 0, ceiling
	return p, nil
}

// bars counts times in bins.
func bars(times []float64, fill color.Color) (*plotter.Histogram, error) {
	counts := make(plotter.XYs, bins)
	for i := range counts {
		counts[i].X = (float64(i) + 0.5) * bin
	}
	for _, t := range times {
		if i := int(t / bin); i < bins {
			counts[i].Y++
		}
	}
	h, err := plotter.NewHistogram(counts, bins)
	if err != nil {
		return nil, err
	}
	h.FillColor, h.LineStyle.Width = fill, 0
	return h, nil
}
