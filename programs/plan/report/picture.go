package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Colors, each with its counterpart in the dark.
var (
	white   = color.RGBA{0xff, 0xff, 0xff, 0xff}
	black   = color.RGBA{0x00, 0x00, 0x00, 0xff}
	palette = []color.RGBA{{0x1f, 0x5f, 0xb4, 0xff}, {0xc0, 0x39, 0x2b, 0xff}, {0x4f, 0x9a, 0x5b, 0xff}, {0xa0, 0x5a, 0xa8, 0xff}, {0xc9, 0x7b, 0x2d, 0xff}}
	dark    = map[color.RGBA]string{
		white: "#0D1117", black: "#8B949E", palette[0]: "#6CB0FF", palette[1]: "#FF7B72", palette[2]: "#5FC374", palette[3]: "#D09AD8", palette[4]: "#E3A34F",
	}
)

// Sizes in points: a picture is as wide as a phone of 390 pixels.
const (
	pictureWidth  = 342
	pictureHeight = 230
	textSize      = 10
)

// rules are the style of all pictures in the dark, and of the signs of lines.
func rules() (light, inTheDark template.CSS) {
	var bright, b strings.Builder
	for c, to := range dark {
		for _, property := range []string{"fill", "stroke"} {
			fmt.Fprintf(&b, "svg [style*=\"%s:#%02X%02X%02X\"] { %s: %s !important }\n", property, c.R, c.G, c.B, property, to)
		}
	}
	for i, c := range palette {
		fmt.Fprintf(&bright, ".line%d { background: #%02x%02x%02x }\n", i, c.R, c.G, c.B)
		fmt.Fprintf(&b, ".line%d { background: %s }\n", i, dark[c])
	}
	b.WriteString("svg text { fill: #D5DBE3 !important }\n")
	return template.CSS(bright.String()), template.CSS(b.String())
}

// line is a line of a picture.
type line struct {
	name   string
	points plotter.XYs
	steps  bool
	glyphs bool
}

func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = white
	p.X.Label.Text, p.Y.Label.Text = x, y
	sans := font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, textSize)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font, a.Tick.Label.Font = sans, sans
	}
	return p
}

// picture is a drawing, for a page with the rules, and the names of its lines.
type picture struct {
	SVG   template.HTML
	Lines []string
	Unit  string // of time
}

func drawn(p *plot.Plot, lines []line) (*picture, error) {
	var names []string
	for i, l := range lines {
		drawn, marks, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return nil, err
		}
		c := palette[i%len(palette)]
		drawn.Color, drawn.Width = c, vg.Points(1.5)
		if l.steps {
			drawn.StepStyle = plotter.PostStep
		}
		if i > 0 { // a line of the same course shows through
			drawn.Dashes = []vg.Length{vg.Points(4), vg.Points(4 * float64(i))}
		}
		p.Add(drawn)
		if l.glyphs {
			marks.Shape, marks.Color, marks.Radius = draw.CircleGlyph{}, c, vg.Points(3.5-float64(i))
			p.Add(marks)
		}
		names = append(names, l.name)
	}
	canvas := vgsvg.New(pictureWidth, pictureHeight)
	p.Draw(draw.Crop(draw.New(canvas), 0, -4*vg.Millimeter, 0, -2*vg.Millimeter))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, err
	}
	_, svg, _ := bytes.Cut(b.Bytes(), []byte("<svg"))
	svg = bytes.ReplaceAll(svg, []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))
	return &picture{SVG: template.HTML("<svg" + string(svg)), Lines: names}, nil
}

// curve draws the burst by the rate.
func (r *Result) curve() (*picture, error) {
	var covered, all plotter.XYs
	for _, s := range r.Suggestions {
		if s.rate > 0 {
			covered = append(covered, plotter.XY{X: s.rate, Y: float64(s.Room)})
			if s.all > 0 {
				all = append(all, plotter.XY{X: s.rate, Y: float64(s.all)})
			}
		}
	}
	if len(covered) < 2 {
		return nil, nil
	}
	p := newPlot("rate", "burst")
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(rateTicks), decades{}
	p.Add(grid())
	lines := []line{{name: percentOf(r.cover) + " of the keys", points: covered, glyphs: true}}
	if len(all) > 1 {
		lines = append(lines, line{name: "all keys", points: all, glyphs: true})
	}
	return drawn(p, lines)
}

func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Color, g.Horizontal.Color = nil, color.RGBA{0x80, 0x80, 0x80, 0x40}
	return g
}

var rateTicks = []plot.Tick{
	{Value: 1. / 3600, Label: "1/h"}, {Value: 1. / 60, Label: "1/min"}, {Value: 1. / 6, Label: "10/min"}, {Value: 1, Label: "1/s"}, {Value: 10, Label: "10/s"},
	{Value: 100, Label: "100/s"}, {Value: 1000, Label: "1000/s"}, {Value: 10_000, Label: "10 000/s"},
}

// decades are ticks at 1, 10, 100, 1 000 and so on.
type decades struct{}

// Ticks returns the ticks of an axis.
func (decades) Ticks(low, high float64) (ticks []plot.Tick) {
	for v := math.Pow(10, math.Floor(math.Log10(low))); v <= high*1.0001; v *= 10 {
		if v >= low*.9999 {
			ticks = append(ticks, plot.Tick{Value: v, Label: group(int64(math.Round(v)))})
		}
	}
	if len(ticks) < 2 {
		for _, v := range []float64{low, high} {
			ticks = append(ticks, plot.Tick{Value: v, Label: group(int64(math.Round(v)))})
		}
	}
	return ticks
}

// mostSteps is how many steps a line has, about.
const mostSteps = 160

// worstShown is how many keys the picture of demand has.
const worstShown = 5

// demand draws the units of the heaviest keys over time.
func (r *Result) demand() (*picture, error) {
	d := r.result.Demand
	d.Heaviest = d.Heaviest[:min(len(d.Heaviest), worstShown)]
	if len(d.Heaviest) == 0 || len(d.All) < 2 {
		return nil, nil
	}
	interval := d.Interval
	per := 1
	for _, per = range []int{1, 2, 5, 10, 15} {
		if len(d.All)/per <= mostSteps {
			break
		}
	}
	var lines []line
	for _, h := range d.Heaviest {
		lines = append(lines, line{name: r.show(h.Key), steps: true, points: series(h.Intervals, len(d.All), per, d.Start, interval)})
	}
	unit := "requests"
	if r.Units != r.Requests {
		unit = "units of cost"
	}
	axis := clock{d.Start, d.Start.Add(time.Duration(len(d.All)) * interval)}
	p := newPlot(clock{r.From, r.To}.label(), unit+" in "+span((interval*time.Duration(per)).Seconds()))
	p.X.Tick.Marker = axis
	p.Y.Min = 0
	p.Add(grid())
	return drawn(p, lines)
}

// series are the sums of per intervals each, of n.
func series(units []int64, n, per int, start time.Time, interval time.Duration) (points plotter.XYs) {
	for i := 0; i < n; i += per {
		sum := 0.
		for k := i; k < min(i+per, len(units)); k++ {
			sum += float64(units[k])
		}
		points = append(points, plotter.XY{X: float64(start.Add(time.Duration(i) * interval).Unix()), Y: sum})
	}
	return points
}

// mostSpan is as long as a limiter counts.
const mostSpan = 5 * 366 * 24 * time.Hour

// denied draws the denials of each limit per hour; in a log of fewer than four hours per minute, in one of more
// than two months per day or week.
func (r *Result) denied() (*picture, error) {
	if !slices.ContainsFunc(r.Limits, func(l Limit) bool { return l.Denied > 0 }) {
		return nil, nil
	}
	n, per, unit := int(min(r.To.Sub(r.From), mostSpan)/time.Minute)+1, 1, "minute"
	for _, longer := range []string{"hour", "day", "week"} {
		if n/per < 240 || n/per < 1500 && unit == "hour" {
			break
		}
		per, unit = map[string]int{"hour": 60, "day": 24 * 60, "week": 7 * 24 * 60}[longer], longer
	}
	var lines []line
	for _, l := range r.Limits[:min(len(r.Limits), len(palette))] {
		lines = append(lines, line{name: l.title(), steps: true, points: series(l.Minutes, n+per, per, r.From, time.Minute)})
	}
	axis := clock{r.From, r.To}
	p := newPlot(axis.label(), "denied per "+unit)
	p.X.Tick.Marker = axis
	p.Y.Min = 0
	p.Add(grid())
	drawing, err := drawn(p, lines)
	if err == nil {
		drawing.Unit = unit
	}
	return drawing, err
}

// clock has four or five ticks at whole hours or days.
type clock struct{ from, to time.Time }

// label is the dates and the zone of an axis.
func (c clock) label() string {
	from, to := c.from.UTC().Format(time.DateOnly), c.to.UTC().Format(time.DateOnly)
	if from != to {
		from += " to " + to
	}
	return from + ", UTC"
}

// Ticks returns the ticks of an axis.
func (c clock) Ticks(_, _ float64) (ticks []plot.Tick) {
	step := time.Minute
	steps := []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour, 91 * 24 * time.Hour, 364 * 24 * time.Hour}
	for _, s := range steps {
		if step = s; c.to.Sub(c.from)/s <= 5 {
			break
		}
	}
	layout := "15:04"
	if step >= 24*time.Hour {
		layout = "Jan 2"
	}
	for at := c.from.UTC().Truncate(step); !at.After(c.to); at = at.Add(step) {
		if !at.Before(c.from) {
			ticks = append(ticks, plot.Tick{Value: float64(at.Unix()), Label: at.Format(layout)})
		}
	}
	return ticks
}
