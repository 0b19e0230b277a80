package main

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/sluice-go/sluice/bench/figure"
)

// colors of the kinds: ours blue, peers grey, the floor dark.
var colors = map[kind]color.Color{
	ours:  figure.Blue,
	peer:  figure.Grey,
	floor: figure.Slate,
}

// bar is one value with its name.
type bar struct {
	name  string
	kind  kind
	value float64
}

// panel is a chart of horizontal bars.
type panel struct {
	title, axis string
	bars        []bar
}

// pictured says which groups are drawn together.
var pictured = []struct {
	name string
	ids  []string
}{
	{"bucket", []string{"bucket", "bucket-denied"}},
	{"keyed", []string{"keyed-1024", "keyed-131072"}},
	{"http", []string{"http", "http-denied"}},
	{"grpc", []string{"grpc"}},
	{"inflight", []string{"inflight", "adaptive", "inflight-denied", "adaptive-denied"}},
	{"redis", []string{"redis-lone", "redis", "redis-hot"}},
}

// panels are the charts of the report by the names of their pictures.
func (r report) panels() map[string][]panel {
	all := map[string][]panel{}
	for _, p := range pictured {
		for _, res := range r.results {
			if slices.Contains(p.ids, res.id) {
				all[p.name] = append(all[p.name], res.panel())
			}
		}
	}
	if len(r.prints) > 0 {
		p := panel{title: fmt.Sprintf("%d live keys", r.keys), axis: "bytes a key"}
		for _, f := range r.prints {
			k := peer
			if f.library == sluice {
				k = ours
			}
			p.bars = append(p.bars, bar{f.library, k, f.bytes})
		}
		all["memory"] = []panel{p}
	}
	return all
}

// pictures writes the SVG files of the report into dir.
func (r report) pictures(dir string) error {
	for name, ps := range r.panels() {
		if err := write(filepath.Join(dir, "bench-"+name+".svg"), ps); err != nil {
			return err
		}
	}
	return nil
}

// panel shows the rows of r: the time of a decision, or the time that the
// middleware adds to the handler.
func (r result) panel() panel {
	p := panel{title: r.title, axis: "ns a decision"}
	if r.over {
		p.axis = "ns over the bare handler"
	}
	for _, x := range r.rows {
		switch {
		case !r.over:
			p.bars = append(p.bars, bar{x.name, x.kind, x.median()})
		case x.kind != floor:
			p.bars = append(p.bars, bar{x.name, x.kind, r.overFloor(x)})
		}
	}
	return p
}

// write draws the panels one below the other.
func write(path string, ps []panel) error {
	const line, frame = 0.95 * vg.Centimeter, 1.7 * vg.Centimeter
	var height vg.Length
	for _, p := range ps {
		height += vg.Length(len(p.bars))*line + frame
	}
	canvas := vgsvg.New(figure.Width, height)
	whole := figure.Blank(canvas)
	top := height
	for _, p := range ps {
		drawn, err := p.plot()
		if err != nil {
			return err
		}
		bottom := top - vg.Length(len(p.bars))*line - frame
		drawn.Draw(draw.Crop(whole, 2*vg.Millimeter, -2*vg.Millimeter, bottom+2*vg.Millimeter, top-height-2*vg.Millimeter))
		top = bottom
	}
	return figure.Write(path, canvas)
}

// plot draws the bars from top to bottom, each with its name above it and its value.
func (p panel) plot() (*plot.Plot, error) {
	bars := slices.Clone(p.bars)
	slices.Reverse(bars) // the axis counts from below
	drawn := figure.New(p.title+"\n"+p.axis, "", "")
	drawn.HideAxes()
	most := 0.0
	var names, values plotter.XYLabels
	for i, b := range bars {
		most = max(most, b.value)
		names.XYs = append(names.XYs, plotter.XY{X: 0, Y: float64(i) + .45})
		names.Labels = append(names.Labels, b.name)
		values.XYs = append(values.XYs, plotter.XY{X: b.value, Y: float64(i)})
		values.Labels = append(values.Labels, " "+shown(b.value))
	}
	for k, fill := range colors {
		lengths := make(plotter.Values, len(bars))
		for i, b := range bars {
			if b.kind == k {
				lengths[i] = b.value
			}
		}
		chart, err := plotter.NewBarChart(lengths, vg.Points(9))
		if err != nil {
			return nil, err
		}
		chart.Horizontal, chart.Color, chart.LineStyle.Width = true, fill, 0
		drawn.Add(chart)
	}
	for _, labels := range []plotter.XYLabels{names, values} {
		text, err := plotter.NewLabels(labels)
		if err != nil {
			return nil, err
		}
		for i := range text.TextStyle {
			text.TextStyle[i] = figure.Text(figure.Small)
		}
		drawn.Add(text)
	}
	drawn.X.Min, drawn.X.Max = 0, 1.15*most
	drawn.Y.Min, drawn.Y.Max = -.4, float64(len(bars))-.25
	return drawn, nil
}

// shown writes a value as precisely as its size deserves.
func shown(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", math.Round(v))
}
