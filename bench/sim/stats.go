package sim

import (
	"slices"
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
	limits  []int   // one for each bin
	times   []int64 // of requests that ended in the window
	work    int64   // processor time that requests have asked for
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

func newStats(end time.Duration) stats { return stats{bins: make([]tally, end/bin+1)} }

func (s *stats) at(t int64) *tally { return &s.bins[t/int64(bin)] }

func (s *stats) arrive(w *world, r *request) {
	s.at(r.born).arrived++
	if w.inside(r.born) {
		s.asked[r.class]++
		s.ask(r)
	}
}

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
		s.times = append(s.times, took)
	}
}

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

// quantile is of durations in nanoseconds, which it sorts; 0 without any.
func quantile(q float64, times []int64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return time.Duration(times[min(int(q*float64(len(times))), len(times)-1)])
}
