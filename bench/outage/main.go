// Outage draws the series that TestW3_EightInstancesThroughOutages writes:
//
//	SLUICE_LONG=1 SLUICE_DRAW=$PWD/bench/outage/series.csv go test -count 1 -run EightInstances ./distributed
//	cd bench && go run ./outage
package main

import (
	"encoding/csv"
	"errors"
	"image/color"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/bench/figure"
)

// point is one row: the admissions of eight instances together, per second.
type point struct {
	seconds, admitted, limit float64
	phase                    string
}

func main() {
	rates, sums, err := picture(read("outage/series.csv"))
	algo.Must(0, err)
	algo.Must(0, figure.Stack("../docs/outage.svg", 5.5*vg.Centimeter, rates, sums))
}

func read(path string) (points []point) {
	file := algo.Must(os.Open(path))
	defer func() { _ = file.Close() }()
	number := func(text string) float64 { return algo.Must(strconv.ParseFloat(text, 64)) }
	for _, row := range algo.Must(csv.NewReader(file).ReadAll())[1:] {
		points = append(points, point{number(row[0]), number(row[2]), number(row[3]), row[1]})
	}
	return points
}

// Burst of the limit in that test.
const burst = 80

// picture draws the admitted rate, and below it their number beside the limit and the bound;
// grey where Redis was away.
func picture(points []point) (rates, sums *plot.Plot, err error) {
	rates = figure.New("Admitted a second, of 400", "", "")
	sums = figure.New("Admitted since the start", "seconds", "")
	end := points[len(points)-1]
	var rate, sum, away, limit, bound plotter.XYs
	admitted, before, lost := 0.0, 0.0, 0.0
	for _, q := range points {
		admitted += q.admitted * (q.seconds - before)
		before = q.seconds
		y := 0.0
		if q.phase == "going" || q.phase == "outage" {
			y, lost = 1, burst // the server comes back without its data
		}
		line := burst + q.limit*q.seconds
		rate, sum = append(rate, plotter.XY{X: q.seconds, Y: q.admitted}), append(sum, plotter.XY{X: q.seconds, Y: admitted})
		limit, bound = append(limit, plotter.XY{X: q.seconds, Y: line}), append(bound, plotter.XY{X: q.seconds, Y: 2*line + lost})
		away = append(away, plotter.XY{X: q.seconds, Y: y})
	}
	rates.Y.Min, rates.Y.Max = 0, 5*end.limit // room for the legend
	sums.Y.Min, sums.Y.Max = 0, 1.1*bound[len(bound)-1].Y
	ceiling := plotter.XYs{{X: 0, Y: end.limit}, {X: end.seconds, Y: end.limit}}
	line := func(name string, points plotter.XYs, c color.RGBA, width float64) figure.Line {
		return figure.Line{Name: name, Points: points, Color: c, Width: width, Steps: true}
	}
	shade := func(height float64) figure.Line {
		l := figure.Line{Name: "Redis away", Color: figure.Pale, Filled: true, Steps: true}
		for _, a := range away {
			l.Points = append(l.Points, plotter.XY{X: a.X, Y: height * a.Y})
		}
		return l
	}
	for _, p := range []*plot.Plot{rates, sums} {
		p.Legend.Top, p.Legend.Left, p.X.Min = true, p == sums, 0
	}
	return rates, sums, errors.Join(
		figure.Add(rates, shade(rates.Y.Max), line("the limit", ceiling, figure.Red, 1), line("admitted", rate, figure.Blue, 1.6)),
		figure.Add(sums, shade(sums.Y.Max), line("bound: 2(B + R\u00b7t) + B", bound, figure.Orange, 1),
			line("limit: B + R\u00b7t", limit, figure.Red, 1), line("admitted", sum, figure.Blue, 1.6)))
}
