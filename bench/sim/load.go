package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// Stretch is a part of a load: until an instant of the run, the rate moves
// evenly from From to To, both in capacities of the server.
type Stretch struct {
	Until    time.Duration
	From, To float64
}

// Load is the rate of arrivals: an open loop, whose clients do not wait for
// one another, with exponential distances (a Poisson process).
type Load []Stretch

// End is when the load ends.
func (l Load) End() time.Duration { return l[len(l)-1].Until }

// Steady is a load of x capacities.
func Steady(x float64, d time.Duration) Load { return Load{{d, x, x}} }

// Step is a load of 0.85 capacities that is x between from and to.
func Step(x float64, from, to, end time.Duration) Load {
	return Load{{from, calm, calm}, {to, x, x}, {end, calm, calm}}
}

// Ramp rises evenly from 0.85 to x capacities between from and top, falls as
// evenly until to, and stays at 0.85.
func Ramp(x float64, from, to, end time.Duration) Load {
	return Load{{from, calm, calm}, {(from + to) / 2, calm, x}, {to, x, calm}, {end, calm, calm}}
}

// Bursts is a load of 0.85 capacities with one of x for length at the start of
// every period between from and to.
func Bursts(x float64, from, length, period, to, end time.Duration) Load {
	l := Load{{from, calm, calm}}
	for at := from; at < to; at += period {
		l = append(l, Stretch{at + length, x, x}, Stretch{at + period, calm, calm})
	}
	return append(l, Stretch{end, calm, calm})
}

// calm is a load that every server carries.
const calm = 0.85

// arrivals makes the instants of a load.
type arrivals struct {
	load  Load
	rate  float64 // of one capacity, per nanosecond
	rng   *rand.Rand
	now   float64
	start float64 // of the present stretch
	i     int
	burst int // requests per arrival, 0: 1, at exponential distances
}

// next is the following arrival, or never. Within a stretch that rises or falls
// candidates come at its highest rate and are thinned out (Lewis and Shedler,
// 1979); at the end of a stretch the distance is drawn afresh, which changes
// nothing, because the exponential has no memory.
func (a *arrivals) next() int64 {
	for a.i < len(a.load) {
		s := a.load[a.i]
		until, most := float64(s.Until), max(s.From, s.To)
		if a.burst > 0 {
			a.now += float64(a.burst) / (a.rate * most)
		} else {
			a.now += a.rng.ExpFloat64() / (a.rate * most)
		}
		if a.now >= until || most == 0 {
			a.now, a.start = until, until
			a.i++
			continue
		}
		if s.From == s.To {
			return int64(a.now)
		}
		part := (a.now - a.start) / (until - a.start)
		if a.rng.Float64()*most < s.From+(s.To-s.From)*part {
			return int64(a.now)
		}
	}
	return never
}

// mean is the average of the load between two instants, in capacities.
func (l Load) mean(from, to time.Duration) float64 {
	return l.integral(from, to, func(x float64) float64 { return x }) / float64(to-from)
}

// carried is the largest average throughput between two instants of a server whose
// rejections cost rho, in capacities.
func (l Load) carried(from, to time.Duration, rho float64) float64 {
	return l.integral(from, to, func(x float64) float64 { return carries(x, rho) }) / float64(to-from)
}

// carries is the throughput a of a server under a load of x capacities, if a rejection
// costs the share rho of a request: a + (x-a)*rho = 1.
func carries(x, rho float64) float64 {
	return max(min(x, (1-x*rho)/(1-rho)), 0)
}

// integral sums f of the load over time, in steps of at most 10 ms.
func (l Load) integral(from, to time.Duration, f func(float64) float64) (sum float64) {
	start := time.Duration(0)
	for _, s := range l {
		a, b := max(start, from), min(s.Until, to)
		if b > a {
			steps := math.Ceil(float64(b-a) / float64(10*time.Millisecond))
			if s.From == s.To {
				steps = 1
			}
			width := float64(b-a) / steps
			for i := range int(steps) {
				at := float64(a-start) + (float64(i)+0.5)*width
				sum += width * f(s.From+(s.To-s.From)*at/float64(s.Until-start))
			}
		}
		start = s.Until
	}
	return sum
}
