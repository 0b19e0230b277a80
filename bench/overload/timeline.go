package main

import (
	"fmt"
	"path/filepath"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/sluice-go/sluice/bench/figure"
)

// The run that is shown over time.
const (
	timelineWork  = "5ms"
	timelineTimes = 5
)

// timeline shows one overload as it goes: none, default, and the peer that keeps
// the most of it.
func (r results) timeline(dir string) (picture, error) {
	us, ok := r.find(timelineWork, "default", timelineTimes)
	if !ok || len(us.Series) == 0 {
		return picture{}, nil
	}
	title := fmt.Sprintf("%s of processor time, load %gx, %dx, %gx", timelineWork, steady, timelineTimes, steady)
	p := frame(title, "seconds")
	p.Y.Label.Text = "in time / capacity"
	overload := figure.Line{Name: "overload", Points: plotter.XYs{{X: us.Begins.Seconds(), Y: 1.9}, {X: us.Ends.Seconds(), Y: 1.9}}, Color: figure.Pale, Filled: true}
	lines, peer := []figure.Line{overload}, r.bestPeer()
	for _, n := range pens {
		f, ok := r.find(timelineWork, n.limiter, timelineTimes)
		if ok && (n.limiter == "none" || n.limiter == "default" || n.limiter == peer) {
			lines = append(lines, figure.Line{Name: n.limiter, Points: f.points(), Color: n.color, Width: n.width})
		}
	}
	if err := figure.Add(p, lines...); err != nil {
		return picture{}, err
	}
	p.Legend.Top = true
	p.X.Min, p.Y.Min, p.Y.Max = 0, 0, 1.9 // room for the legend
	caption := fmt.Sprintf("Goodput in slices of %v, by when the answers came.", slice)
	if peer != "" {
		caption += fmt.Sprintf(" %s is the peer that keeps the most of this overload.", peer)
	}
	return picture{"overload-time.svg", "goodput over time", caption}, figure.Stack(filepath.Join(dir, "overload-time.svg"), 6*vg.Centimeter, p)
}

// bestPeer is the peer with the highest goodput in the run that is shown.
func (r results) bestPeer() (name string) {
	best := -1.0
	for _, peer := range peerLimiters {
		if f, ok := r.find(timelineWork, peer, timelineTimes); ok && f.Goodput > best {
			name, best = peer, f.Goodput
		}
	}
	return name
}

// points are the middles of the slices.
func (f *figures) points() (xys plotter.XYs) {
	for i, y := range f.Series {
		xys = append(xys, plotter.XY{X: (float64(i) + .5) * slice.Seconds(), Y: y})
	}
	return xys
}
