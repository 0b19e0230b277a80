package adaptive

import "math"

// Work that takes long either queues or is slow by nature. Two measurements distinguish them: whether
// the time of work grows with the work in flight at its admission (fit), and whether the rate of ends
// falls with the work in flight (windowed).
type verdict int

const (
	byNature verdict = -1
	unclear  verdict = 0
	queues   verdict = 1
)

const (
	unknownErr  = 9.0  // standard error of an unknown part or elasticity
	queuePart   = 0.2  // of the time of work, that grows with the work in flight: more is a queue
	naturePart  = 0.5  // less is none
	mostPart    = 1.4  // which is impossible in a queue: 300 ms, 100 a second
	independent = 10.0 // in flight, from which times that end together say less: 300 ms, 100 a second
	followMost  = 1.6  // elasticity; more is a loss of capacity
	leastStep   = 0.2  // of the logarithm of the work in flight, for a comparison of windows
)

// fit is a regression of the time of work on the work in flight at its admission, by sums.
type fit struct{ one, n, t, nn, nt, tt float64 }

// sample returns the fit of one end: work that began with n in flight and took t.
func sample(n, t float64) fit { return fit{1, n, t, n * n, n * t, t * t} }

func (f *fit) add(o fit) {
	f.one, f.n, f.t = f.one+o.one, f.n+o.n, f.t+o.t
	f.nn, f.nt, f.tt = f.nn+o.nn, f.nt+o.nt, f.tt+o.tt
}

// mean returns the mean time of work, s; 0: unknown.
func (f *fit) mean() float64 {
	if f.one < rateEnds {
		return 0
	}
	return f.t / f.one
}

// uneven returns the squared coefficient of variation of the time of work; 1 if it is unknown.
func (f *fit) uneven() float64 {
	t := f.mean()
	if t == 0 {
		return 1
	}
	return max(f.tt/f.one-t*t, 0) / (t * t)
}

// part returns the part of the time of work that grows with the work in flight, and its standard
// error: about 1 in a queue, 0 where nothing waits.
func (f *fit) part() (part, err float64) {
	n, t := f.n/f.one, f.t/f.one
	nn, nt, tt := f.nn/f.one-n*n, f.nt/f.one-n*t, f.tt/f.one-t*t
	if f.one < rateEnds || nn < 0.3 || t <= 0 { // the work in flight hardly varied
		return 0, unknownErr
	}
	slope := nt / nn
	return slope * n / t, math.Sqrt(max(tt-slope*nt, 0)/nn/f.one*max(1, n/independent)) * n / t
}

// narrow reports whether the work in flight hardly varied, because a limit holds it there.
func (f *fit) narrow() bool {
	n := f.n / f.one
	return f.nn/f.one-n*n < n/4
}

// windowed summarizes a span of time: its mean work in flight and its ends.
type windowed struct{ n, rate, ends float64 }

// follows returns the elasticity of the rate of ends to the work in flight between two windows, and its
// standard error: 1 by nature, and 0 in a queue.
func (w windowed) follows(was windowed, uneven float64) (elasticity, err float64) {
	step := math.Log(w.n / was.n)
	if was.n == 0 || math.Abs(step) < leastStep || w.rate <= 0 || was.rate <= 0 {
		return 0, unknownErr
	}
	return math.Log(w.rate/was.rate) / step, math.Sqrt((1+uneven)*(1/w.ends+1/was.ends)) / math.Abs(step)
}

// verdict judges work that takes w seconds. Clients that leave cut the times of work off, which then
// show nothing unless other work is quick.
func (s *sojourn) verdict(w float64) verdict {
	part, err := s.pace.fit.part()
	mean := s.pace.fit.mean()
	asItTakes := w < 2*max(mean, s.patience)
	switch {
	case part-3*err > queuePart && part-err < mostPart:
		return queues
	case s.pace.leaves() && (mean > s.patience/4 || mean < w/2):
		return unclear
	case math.Abs(part)+err < queuePart/2, asItTakes && (part+2*err < 0 && !s.pace.fit.narrow() || math.Abs(part)+err < naturePart):
		return byNature
	}
	return unclear
}

// few reports whether too few requests end for a verdict.
func (s *sojourn) few(v verdict, rate float64) bool {
	_, err := s.pace.fit.part()
	return rate*s.target < judgeEnds && (v != queues || err > queuePart)
}
