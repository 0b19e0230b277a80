package main

import "slices"

// median is the middle of xs, or the mean of the two in the middle; 0 of none.
func median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(xs))
	half := len(s) / 2
	if len(s)%2 == 1 {
		return s[half]
	}
	return (s[half-1] + s[half]) / 2
}

// quartiles are the values a quarter of the way from either end of xs.
func quartiles(xs []float64) (low, high float64) {
	if len(xs) == 0 {
		return 0, 0
	}
	s := slices.Sorted(slices.Values(xs))
	return s[len(s)/4], s[len(s)-1-len(s)/4]
}

// paired is the median over the rounds of f(xs[i], ys[i]). A slow moment of the
// machine that covers a round is in both, and mostly cancels out.
func paired(xs, ys []float64, f func(x, y float64) float64) float64 {
	both := make([]float64, min(len(xs), len(ys)))
	for i := range both {
		both[i] = f(xs[i], ys[i])
	}
	return median(both)
}

func quotient(x, y float64) float64   { return x / y }
func difference(x, y float64) float64 { return x - y }
