package main

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// colors of the kinds: ours blue, peers grey, the floor dark.
var colors = map[kind]color.Color{
	ours:  color.RGBA{0x1f, 0x5f, 0xb4, 0xff},
	peer:  color.RGBA{0xb4, 0xba, 0xc4, 0xff},
	floor: color.RGBA{0x4a, 0x4f, 0x57, 0xff},
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

// panel shows the rows of r: the time of a decision, or what the middleware
// adds to the handler.
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
	const width, line, frame = 17 * vg.Centimeter, 0.62 * vg.Centimeter, 2.1 * vg.Centimeter
	var height vg.Length
	for _, p := range ps {
		height += vg.Length(len(p.bars))*line + frame
	}
	canvas := vgsvg.New(width, height)
	whole := draw.New(canvas)
	top := height
	for _, p := range ps {
		drawn, err := p.plot()
		if err != nil {
			return err
		}
		tall := vg.Length(len(p.bars))*line + frame
		drawn.Draw(draw.Crop(whole, 2*vg.Millimeter, -4*vg.Millimeter, top-tall+2*vg.Millimeter, top-height-2*vg.Millimeter))
		top -= tall
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return file.Close()
}

// plot draws the bars from top to bottom, each with its value.
func (p panel) plot() (*plot.Plot, error) {
	bars := slices.Clone(p.bars)
	slices.Reverse(bars) // the axis counts from below
	drawn := plot.New()
	drawn.BackgroundColor = color.White
	drawn.Title.Text, drawn.X.Label.Text = p.title, p.axis
	drawn.Title.TextStyle.Font.Size = font.Points(10)
	drawn.X.Label.TextStyle.Font.Size = font.Points(8)
	names := make([]string, len(bars))
	labels := plotter.XYLabels{}
	most := 0.0
	for i, b := range bars {
		names[i] = b.name
		most = max(most, b.value)
		labels.XYs = append(labels.XYs, plotter.XY{X: b.value, Y: float64(i)})
		labels.Labels = append(labels.Labels, " "+shown(b.value))
	}
	for k, fill := range colors {
		values := make(plotter.Values, len(bars))
		for i, b := range bars {
			if b.kind == k {
				values[i] = b.value
			}
		}
		chart, err := plotter.NewBarChart(values, vg.Points(10))
		if err != nil {
			return nil, err
		}
		chart.Horizontal, chart.Color, chart.LineStyle.Width = true, fill, 0
		drawn.Add(chart)
	}
	text, err := plotter.NewLabels(labels)
	if err != nil {
		return nil, err
	}
	for i := range text.TextStyle {
		text.TextStyle[i].Font.Size = font.Points(8)
		text.TextStyle[i].YAlign = draw.YCenter
	}
	drawn.Add(text)
	drawn.NominalY(names...)
	drawn.Y.Tick.Label.Font.Size, drawn.X.Tick.Label.Font.Size = font.Points(8), font.Points(8)
	drawn.X.Tick.Marker = plot.TickerFunc(wholeTicks)
	drawn.Y.Padding = vg.Points(24) // viewers without the font draw wider names
	drawn.X.Min, drawn.X.Max = 0, 1.12*most
	drawn.Y.Min, drawn.Y.Max = -0.6, float64(len(bars))-0.4
	return drawn, nil
}

// wholeTicks are the default ticks without decimals.
func wholeTicks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = fmt.Sprintf("%g", ticks[i].Value)
		}
	}
	return ticks
}

// shown writes a value as precisely as its size deserves.
func shown(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", math.Round(v))
}
