package main

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	seconds = 12.0
	bin     = 0.2 // seconds
	bins    = int(seconds / bin)
	ceiling = 110 // of the axis, in units a bin
	columns = 3
	perBin  = 50 * bin // what the rate grants
)

var (
	grey  = color.RGBA{0xc8, 0xcc, 0xd2, 0xff}
	blue  = color.RGBA{0x1f, 0x5f, 0xb4, 0xff}
	red   = color.RGBA{0xc0, 0x39, 0x2b, 0xff}
	white = color.White
)

// drawing is what one shape made of the arrivals.
type drawing struct {
	shape
	arrivals, starts []float64
}

// draw writes an SVG for each drawing and an overview.
func draw(dir string, drawings []drawing) error {
	plots := make([]*plot.Plot, len(drawings))
	for i, d := range drawings {
		p, err := d.plot()
		if err != nil {
			return err
		}
		plots[i] = p
		canvas := vgsvg.New(16*vg.Centimeter, 7*vg.Centimeter)
		p.Draw(vgdraw.New(canvas))
		if err := write(filepath.Join(dir, d.name+".svg"), canvas); err != nil {
			return err
		}
	}
	return write(filepath.Join(dir, "overview.svg"), overview(plots))
}

// overview lays the plots out in columns.
func overview(plots []*plot.Plot) *vgsvg.Canvas {
	rows := (len(plots) + columns - 1) / columns
	grid := make([][]*plot.Plot, rows)
	for i := range grid {
		grid[i] = make([]*plot.Plot, columns)
	}
	for i, p := range plots {
		grid[i/columns][i%columns] = p
	}
	canvas := vgsvg.New(columns*12*vg.Centimeter, vg.Length(rows)*5.5*vg.Centimeter)
	tiles := vgdraw.Tiles{Rows: rows, Cols: columns, PadX: 6 * vg.Millimeter, PadY: 6 * vg.Millimeter,
		PadTop: 3 * vg.Millimeter, PadBottom: 3 * vg.Millimeter, PadLeft: 3 * vg.Millimeter, PadRight: 3 * vg.Millimeter}
	for y, row := range plot.Align(grid, tiles, vgdraw.New(canvas)) {
		for x, c := range row {
			if grid[y][x] != nil {
				grid[y][x].Draw(c)
			}
		}
	}
	return canvas
}

func write(path string, canvas *vgsvg.Canvas) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return file.Close()
}

// plot draws arrivals and admitted starts in bins of 200 ms, and the rate.
func (d drawing) plot() (*plot.Plot, error) {
	p := plot.New()
	p.BackgroundColor = white
	p.Title.Text = d.title + "\n" + d.about
	p.Title.TextStyle.Font.Size = font.Points(9)
	p.X.Label.Text = "seconds"
	p.Y.Label.Text = "in 200 ms"
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font.Size = font.Points(8)
		a.Tick.Label.Font.Size = font.Points(7)
	}
	asked, err := bars(d.arrivals, grey)
	if err != nil {
		return nil, err
	}
	given, err := bars(d.starts, blue)
	if err != nil {
		return nil, err
	}
	steady, err := plotter.NewLine(plotter.XYs{{X: 0, Y: perBin}, {X: seconds, Y: perBin}})
	if err != nil {
		return nil, err
	}
	steady.Color, steady.Width = red, vg.Points(0.7)
	p.Add(asked, given, steady)
	p.Legend.Add("arrived   ", asked)
	p.Legend.Add("admitted   ", given)
	p.Legend.Add("the rate   ", steady)
	p.Legend.Top, p.Legend.Padding, p.Legend.ThumbnailWidth = true, vg.Points(3), vg.Points(12)
	p.Legend.TextStyle.Font.Size = font.Points(7)
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
