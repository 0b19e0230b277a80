// Package figure gives the pictures of the pages one look: wide enough for a phone and no wider,
// without serifs, and dark where the reader's pages are dark.
package figure

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"os"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Width of a picture: on a phone of 390 pixels a point is a pixel.
const Width = 12 * vg.Centimeter

// Sizes of text. Nothing is smaller than Small.
const (
	Large = 12
	Small = 10
)

// Colors, each with its counterpart in the dark.
var (
	White  = color.RGBA{0xff, 0xff, 0xff, 0xff}
	Black  = color.RGBA{0x00, 0x00, 0x00, 0xff}
	Blue   = color.RGBA{0x1f, 0x5f, 0xb4, 0xff}
	Red    = color.RGBA{0xc0, 0x39, 0x2b, 0xff}
	Orange = color.RGBA{0xc9, 0x7b, 0x2d, 0xff}
	Green  = color.RGBA{0x4f, 0x9a, 0x5b, 0xff}
	Violet = color.RGBA{0xa0, 0x5a, 0xa8, 0xff}
	Cyan   = color.RGBA{0x00, 0x9e, 0xb3, 0xff}
	Brown  = color.RGBA{0x8a, 0x5a, 0x2b, 0xff}
	Slate  = color.RGBA{0x4a, 0x4f, 0x57, 0xff}
	Grey   = color.RGBA{0xb4, 0xba, 0xc4, 0xff}
	Pale   = color.RGBA{0xe4, 0xe6, 0xea, 0xff}
)

var dark = map[color.RGBA]string{
	White: "#0D1117", Black: "#8B949E", Blue: "#6CB0FF", Red: "#FF7B72", Orange: "#E3A34F", Green: "#5FC374",
	Violet: "#D09AD8", Cyan: "#4FC9DC", Brown: "#C99A6B", Slate: "#AAB2BD", Grey: "#6B7482", Pale: "#262C36",
}

const darkText = "#D5DBE3"

// New is an empty plot.
func New(title, x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = White
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font, p.Legend.TextStyle.Font = sans(Large), sans(Small)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font, a.Tick.Label.Font = sans(Small), sans(Small)
	}
	p.Title.Padding, p.Legend.Padding, p.Legend.ThumbnailWidth = vg.Points(4), vg.Points(3), vg.Points(18)
	return p
}

// Line is a line of a plot, with its name in the legend.
type Line struct {
	Name   string
	Points plotter.XYs
	Color  color.RGBA
	Width  float64 // points
	Filled bool    // the space below it
	Steps  bool
	Glyph  draw.GlyphDrawer // at each point, or nil
}

// Add draws lines, in order, each on top of those before it. A line without points is left out.
func Add(p *plot.Plot, lines ...Line) error {
	for _, l := range lines {
		if len(l.Points) == 0 {
			continue
		}
		drawn, marks, err := plotter.NewLinePoints(l.Points)
		if err != nil {
			return err
		}
		drawn.Color, drawn.Width = l.Color, vg.Points(l.Width)
		if l.Filled {
			drawn.FillColor = l.Color
		}
		if l.Steps {
			drawn.StepStyle = plotter.PreStep
		}
		p.Add(drawn)
		thumbs := []plot.Thumbnailer{drawn}
		if l.Glyph != nil {
			marks.Shape, marks.Color, marks.Radius = l.Glyph, l.Color, vg.Points(2.5)
			p.Add(marks)
			thumbs = append(thumbs, marks)
		}
		p.Legend.Add(l.Name+"  ", thumbs...)
	}
	return nil
}

// Blank fills a canvas with the color of the page.
func Blank(canvas vg.CanvasSizer) draw.Canvas {
	whole := draw.New(canvas)
	whole.SetColor(White)
	whole.Fill(whole.Path())
	return whole
}

func sans(size vg.Length) font.Font {
	return font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
}

// Stack writes plots of the given height, one below the other, as one picture.
func Stack(path string, height vg.Length, plots ...*plot.Plot) error {
	canvas := vgsvg.New(Width, vg.Length(len(plots))*height)
	column := make([][]*plot.Plot, len(plots))
	for i, p := range plots {
		column[i] = []*plot.Plot{p}
	}
	tiles := draw.Tiles{Rows: len(plots), Cols: 1, PadY: 4 * vg.Millimeter,
		PadTop: vg.Millimeter, PadBottom: vg.Millimeter, PadLeft: vg.Millimeter, PadRight: 4 * vg.Millimeter}
	for i, row := range plot.Align(column, tiles, Blank(canvas)) {
		plots[i].Draw(row[0])
	}
	return Write(path, canvas)
}

// Write writes a picture that follows the reader's color scheme.
func Write(path string, drawn io.WriterTo) error {
	var b bytes.Buffer
	if _, err := drawn.WriteTo(&b); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, themed(b.Bytes()), 0o644)
}

// themed adds the rules of the dark and fonts that readers have: Liberation Sans has the
// widths of Arial and Helvetica.
func themed(svg []byte) []byte {
	var rules strings.Builder
	rules.WriteString("<style>@media (prefers-color-scheme: dark) {\n")
	for _, c := range []color.RGBA{White, Black, Blue, Red, Orange, Green, Violet, Cyan, Brown, Slate, Grey, Pale} {
		for _, property := range []string{"fill", "stroke"} {
			fmt.Fprintf(&rules, "[style*=\"%s:#%02X%02X%02X\"] { %s: %s !important }\n", property, c.R, c.G, c.B, property, dark[c])
		}
	}
	fmt.Fprintf(&rules, "text { fill: %s !important }\n}</style>\n", darkText)
	head, body, _ := bytes.Cut(svg, []byte("<g "))
	body = bytes.ReplaceAll(body, []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))
	return slices.Concat(head, []byte(rules.String()), []byte("<g "), body)
}
