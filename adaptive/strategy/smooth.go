package strategy

import "math"

// smooth is an exponential mean over time: a value weighs by its duration, not by its readings.
type smooth struct {
	tau   float64 // nanoseconds
	at    int64
	value float64
	known bool
}

func (s *smooth) add(at int64, x float64) {
	if !s.known {
		s.at, s.value, s.known = at, x, true
		return
	}
	dt := float64(max(at-s.at, 0))
	s.at = max(at, s.at)
	s.value += (1 - math.Exp(-dt/s.tau)) * (x - s.value)
}

func (s *smooth) reset() { s.known = false }
