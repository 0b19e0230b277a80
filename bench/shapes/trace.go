package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
)

// readTrace reads arrivals, which must be in order.
func readTrace(path string) ([]float64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var arrivals []float64
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		at, err := strconv.ParseFloat(lines.Text(), 64)
		if err != nil || at < 0 || (len(arrivals) > 0 && at < arrivals[len(arrivals)-1]) {
			return nil, fmt.Errorf("%s:%d: %q is not an instant after the one before it", path, n, lines.Text())
		}
		arrivals = append(arrivals, at)
	}
	return arrivals, lines.Err()
}
