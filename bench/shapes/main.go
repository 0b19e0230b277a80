// Shapes drives the same recorded arrivals through every algorithm and draws
// the admissions of each, and its bound.
//
//	cd bench && go run ./shapes [-out DIR] [-trace FILE]
//
// A dozen seconds of arrivals take no time: the clock of testing/synctest stops
// until every goroutine waits for it.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	out := flag.String("out", "../docs/shapes", "directory to write to")
	trace := flag.String("trace", "shapes/trace.txt", "arrivals: seconds from the start, one a line")
	flag.Parse()
	inVirtualTime(func(bubble func(func())) error { return run(*out, *trace, bubble) })
}

func run(out, trace string, bubble func(func())) error {
	arrivals, err := readTrace(trace)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	drawn := make([]drawing, len(shapes))
	for i, s := range shapes {
		var starts []float64
		bubble(func() { starts, err = s.admits(arrivals) })
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if most := densest(starts, bin); most > s.bound {
			return fmt.Errorf("%s: %d in 200 ms, the bound is %d", s.name, most, s.bound)
		}
		drawn[i] = drawing{s, arrivals, starts}
		fmt.Printf("%-22s admitted %3d of %d, at most %2d in 100 ms, %2d in 1 s\n",
			s.name, len(starts), len(arrivals), densest(starts, 0.1), densest(starts, 1))
	}
	return draw(out, drawn)
}

// densest is the most of times that lie within any window of the given length.
func densest(times []float64, window float64) (most int) {
	first := 0
	for i, t := range times {
		for t-times[first] > window-1e-9 {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
