package sim

import (
	"math"
	"math/bits"
	"time"
)

const (
	bin       = 100 * time.Millisecond
	lookEvery = bin
)

// classShares is how many requests are of each class, from Critical to
// Sheddable.
var classShares = [...]float64{.1, .2, .4, .2, .1}

// stats counts events.
type stats struct {
	bins    []tally
	limits  []int // one for each bin
	times   histogram
	seconds []histogram // only on request
	work    int64       // processor time that requests have asked for
	asked   [len(classShares)]int
	served  [len(classShares)]int
	tenants []use // of the processor, in the window
}

// tally has the counts of a bin of time.
type tally struct {
	arrived  int // first tries and others
	rejected int // of these
	pleased  int // of these, answered within the SLO
	good     int // answered within the SLO in this bin, whenever they arrived
	done     int
}

func newStats(end time.Duration, trace bool) stats {
	s := stats{bins: make([]tally, end/bin+1)}
	if trace {
		s.seconds = make([]histogram, end/time.Second+1)
	}
	return s
}

func (s *stats) at(t int64) *tally { return &s.bins[t/int64(bin)] }

func (s *stats) arrive(w *world, r *request) {
	s.at(r.born).arrived++
	if w.inside(r.born) {
		s.asked[r.class]++
		s.ask(r)
	}
}

func (s *stats) reject(_ *world, r *request) { s.at(r.born).rejected++ }

func (s *stats) complete(w *world, r *request, took int64, late bool) {
	s.at(w.now).done++
	if took <= int64(w.SLO) && !late {
		s.at(w.now).good++
		s.at(r.born).pleased++
		s.serve(w, r)
		if w.inside(r.born) {
			s.served[r.class]++
		}
	}
	if w.inside(w.now) {
		s.times.add(took)
	}
	if s.seconds != nil {
		s.seconds[w.now/int64(time.Second)].add(took)
	}
}

func (s *stats) look(w *world) { s.limits = append(s.limits, w.gate.limit()) }

// inside reports whether an instant is in the window that is measured.
func (w *world) inside(at int64) bool { return at >= int64(w.From) && at < int64(w.To) }

// sum adds up the bins between two instants.
func (s *stats) sum(from, to time.Duration) (t tally) {
	for i := max(int(from/bin), 0); i < min(int(to/bin), len(s.bins)); i++ {
		b := &s.bins[i]
		t.arrived += b.arrived
		t.rejected += b.rejected
		t.pleased += b.pleased
		t.good += b.good
		t.done += b.done
	}
	return t
}

// histogram counts durations in bins of at most 1/64 of their value.
type histogram struct {
	counts [64 << 6]uint32
	n      int
	sum    int64
}

func (h *histogram) add(ns int64) {
	h.counts[slot(uint64(ns))]++
	h.n++
	h.sum += ns
}

func (h *histogram) mean() time.Duration { return time.Duration(h.sum / int64(max(h.n, 1))) }

// slot is the position of the highest bit and the six bits after it.
func slot(x uint64) int {
	e := bits.Len64(x)
	if e <= 7 {
		return int(x)
	}
	return e<<6 | int(x>>(e-7))&63
}

// quantile is the middle of the bin in which it lies; 0 without a sample.
func (h *histogram) quantile(q float64) time.Duration {
	rank := int(math.Ceil(q * float64(h.n)))
	for i, c := range h.counts {
		if rank -= int(c); rank <= 0 && c > 0 {
			return time.Duration(middle(i))
		}
	}
	return 0
}

func middle(slot int) float64 {
	if slot < 8<<6 {
		return float64(slot)
	}
	e := slot >> 6
	return (float64(64|slot&63) + 0.5) * math.Exp2(float64(e-7))
}
