package main

import (
	"image/color"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// colours of the flood and of the others.
var colours = []color.RGBA{{0xc0, 0x39, 0x2b, 0xff}, {0x1f, 0x5f, 0xb4, 0xff}}

// save writes panels side by side.
func save(panels []*plot.Plot, path string) error {
	canvas := vgsvg.New(vg.Length(len(panels))*10*vg.Centimeter, 8*vg.Centimeter)
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: 5 * vg.Millimeter}
	for i, c := range plot.Align([][]*plot.Plot{panels}, tiles, draw.New(canvas))[0] {
		panels[i].Draw(c)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
