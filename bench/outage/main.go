// Outage draws the series that TestW3_EightInstancesThroughOutages writes:
//
//	SLUICE_LONG=1 SLUICE_DRAW=series.csv go test -count 1 -run EightInstances ./distributed
//	cd bench && go run ./outage -in series.csv -out ../docs/outage.svg
package main

import (
	"encoding/csv"
	"flag"
	"fmt"
	"image/color"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// point is one row: what eight instances admitted together, per second.
type point struct {
	seconds, admitted, limit float64
	phase                    string
}

func main() {
	in := flag.String("in", "", "the series, as CSV")
	out := flag.String("out", "", "the picture, as SVG")
	flag.Parse()
	if err := run(*in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "outage:", err)
		os.Exit(1)
	}
}

func run(in, out string) error {
	points, err := read(in)
	if err != nil {
		return err
	}
	p, err := picture(points)
	if err != nil {
		return err
	}
	canvas := vgsvg.New(20*vg.Centimeter, 8*vg.Centimeter)
	p.Draw(draw.New(canvas))
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(file); err != nil {
		return err
	}
	return file.Close()
}

func read(path string) ([]point, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, err
	}
	var points []point
	for _, row := range rows[1:] {
		p := point{phase: row[1]}
		for i, to := range map[int]*float64{0: &p.seconds, 2: &p.admitted, 3: &p.limit} {
			if *to, err = strconv.ParseFloat(row[i], 64); err != nil {
				return nil, err
			}
		}
		points = append(points, p)
	}
	return points, nil
}

// picture draws the admitted rate, the limit, and grey where Redis was away.
func picture(points []point) (*plot.Plot, error) {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text = "Eight instances share a limit on Redis, which goes away and comes back"
	p.Title.TextStyle.Font.Size = font.Points(10)
	p.X.Label.Text, p.Y.Label.Text = "seconds", "admitted a second"
	p.X.Label.TextStyle.Font.Size, p.Y.Label.TextStyle.Font.Size = font.Points(8), font.Points(8)
	p.Legend.TextStyle.Font.Size, p.Legend.Padding = font.Points(8), vg.Points(3)
	var admitted, limit, away plotter.XYs
	for _, q := range points {
		admitted = append(admitted, plotter.XY{X: q.seconds, Y: q.admitted})
		limit = append(limit, plotter.XY{X: q.seconds, Y: q.limit})
		y := 0.0
		if q.phase == "going" || q.phase == "outage" {
			y = 3.5 * q.limit
		}
		away = append(away, plotter.XY{X: q.seconds, Y: y})
	}
	for _, series := range []struct {
		name   string
		points plotter.XYs
		color  color.RGBA
		width  vg.Length
		fill   bool
	}{
		{"Redis away   ", away, color.RGBA{0xe4, 0xe6, 0xea, 0xff}, 0, true},
		{"admitted   ", admitted, color.RGBA{0x1f, 0x5f, 0xb4, 0xff}, vg.Points(1.6), false},
		{"the limit   ", limit, color.RGBA{0xc0, 0x39, 0x2b, 0xff}, vg.Points(0.8), false},
	} {
		line, err := plotter.NewLine(series.points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width, line.StepStyle = series.color, series.width, plotter.PostStep
		if series.fill {
			line.FillColor = series.color
		}
		p.Add(line)
		p.Legend.Add(series.name, line)
	}
	p.Legend.Top = true
	p.Y.Min = 0
	p.Y.Max = 3.5 * points[0].limit
	return p, nil
}
