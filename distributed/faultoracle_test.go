package distributed_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// quota is the limit of a key: the quota of windows, or a bucket that fills in the period.
type quota struct {
	units  int64
	period time.Duration
}

var faultLimit = quota{20, 400 * time.Millisecond}

func (q quota) rate() float64 {
	if q.units == 0 {
		return 0
	}
	return float64(q.units) / q.period.Seconds()
}

// inWindows is the quota of all windows that a span of length w may touch.
func (q quota) inWindows(w time.Duration) float64 {
	if q.units == 0 {
		return 0
	}
	return float64(q.units) * (math.Ceil(float64(w)/float64(q.period)) + 1)
}

// longest is the longest period in use.
func (c cell) longest() time.Duration { return max(c.row.limit.period, c.row.other.period) }

// most is the bound of one way to decide, through Redis or locally, over a window of length
// w. Two algorithms on a name have one each.
func (c cell) most(w time.Duration) float64 {
	if c.row.alien {
		return most(c.algorithm, c.row.limit, quota{}, w) + most(c.others(), c.row.other, quota{}, w)
	}
	return most(c.algorithm, c.row.limit, c.row.other, w)
}

// most is B + R*w of a bucket, and of windows the quota in each that w may touch. Two versions
// of a window admit the sum; of two buckets the larger burst and rate count, and the burst of
// the slower one.
func most(algorithm string, a, b quota, w time.Duration) float64 {
	if algorithm != "token bucket" {
		return a.inWindows(w) + b.inWindows(w)
	}
	burst := max(a.units, b.units)
	switch {
	case b.units == 0 || a.rate() == b.rate():
	case a.rate() < b.rate():
		burst += a.units
	default:
		burst += b.units
	}
	return float64(burst) + max(a.rate(), b.rate())*w.Seconds()
}

// others is the algorithm of the other instance.
func (c cell) others() string {
	if !c.row.alien {
		return c.algorithm
	}
	return faultAlgorithms[(slices.Index(faultAlgorithms, c.algorithm)+1)%len(faultAlgorithms)]
}

// extra is the addition of lost data, steps of the clock and blocks to the bound.
func (c cell) extra() float64 {
	return float64(int64(c.row.losses[c.at])*max(c.row.limit.units, c.row.other.units) + c.row.blocks)
}

// denial is the longest time for which a key may be denied: until its window ends or its
// burst is back, and once more if decisions move between Redis and the instances meanwhile, or
// the clock of the server steps back.
func (c cell) denial() time.Duration { return 2 * c.longest() }

// sample is one decision.
type sample struct {
	key             string
	asked, answered time.Time
	allowed         bool
	source          algo.Source
	failed          bool
}

// outcome has the results of callers and meters.
type outcome struct {
	decisions, fallbacks, failed int
	blocks, early                int           // units of blocks, and those of the first two seconds
	opened, keyFaults, mixed     int           // since the fault began
	p95                          time.Duration // of a decision
	back                         time.Duration // from the end of the fault until Redis decides for all
	denied                       time.Duration // the longest denial of a key
	share                        float64       // of the bound, in the worst window
	unitsLost, slotsLost         int64         // charged to nobody at the end
	meters                       []*gauge
}

func (r *rig) outcome(back time.Duration) *outcome {
	o := &outcome{back: back, meters: r.meters}
	var took []time.Duration
	slices.SortFunc(r.log, func(a, b sample) int { return a.asked.Compare(b.asked) })
	for _, s := range r.log {
		o.decisions++
		took = append(took, s.answered.Sub(s.asked))
		o.fallbacks += one(s.source == algo.SourceFallback)
		o.blocks += one(s.source == algo.SourceBlock)
		o.early += one(s.source == algo.SourceBlock && s.asked.Sub(r.log[0].asked) < 2*time.Second)
		o.failed += one(s.failed)
	}
	slices.Sort(took)
	if n := len(took); n > 0 {
		o.p95 = took[n*95/100]
	}
	for _, key := range r.keys {
		of := slices.DeleteFunc(slices.Clone(r.log), func(s sample) bool { return s.key != key })
		o.share = max(o.share, r.share(of))
		o.denied = max(o.denied, longestDenial(of))
	}
	for _, m := range r.meters {
		opened, keyFaults, mixed := m.counts()
		o.opened, o.keyFaults, o.mixed = o.opened+opened, o.keyFaults+keyFaults, o.mixed+mixed
	}
	return o
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// share is the largest number of units that all instances together admitted in a window, as a
// share of the bound; s is of one key, in the order of the questions. A window lasts from the
// first question in it to the last answer. Where both Redis and instances have admitted, each
// has a bound of its own.
func (c cell) share(s []sample) (share float64) {
	s = slices.DeleteFunc(slices.Clone(s), func(s sample) bool { return !s.allowed })
	local := one(slices.ContainsFunc(s, func(s sample) bool { return s.source == algo.SourceFallback }))
	remote := one(slices.ContainsFunc(s, func(s sample) bool { return s.source != algo.SourceFallback }))
	for i := range s {
		last := s[i].answered
		for j := i; j < len(s); j++ {
			if s[j].answered.After(last) {
				last = s[j].answered
			}
			bound := float64(local+remote)*c.most(last.Sub(s[i].asked)) + c.extra()
			share = max(share, float64(j-i+1)/bound)
		}
	}
	return share
}

// longestDenial is the longest time in which a key was denied whenever it was asked.
func longestDenial(s []sample) (longest time.Duration) {
	slices.SortFunc(s, func(a, b sample) int { return a.answered.Compare(b.answered) })
	var began time.Time
	for _, d := range s {
		switch {
		case d.allowed:
			began = time.Time{}
		case began.IsZero():
			began = d.asked
		}
		if !began.IsZero() {
			longest = max(longest, d.answered.Sub(began))
		}
	}
	return longest
}

// faultTable is the worst of all cells, for each row.
type faultTable struct {
	mu           sync.Mutex
	cells, above int
	rows         map[string]*faultLine
}

type faultLine struct {
	cells, decisions, fallbacks int
	share                       map[string]float64
	denied, stated, p95, back   time.Duration
	unitsLost, slotsLost        int64 // of all cells
}

func (f *faultTable) add(c cell, o *outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rows == nil {
		f.rows = map[string]*faultLine{}
	}
	l := f.rows[c.row.name]
	if l == nil {
		l = &faultLine{share: map[string]float64{}}
		f.rows[c.row.name] = l
	}
	f.cells++
	f.above += one(o.share > 1)
	l.cells++
	l.decisions += o.decisions
	l.fallbacks += o.fallbacks
	l.share[c.algorithm] = max(l.share[c.algorithm], o.share)
	l.denied, l.stated = max(l.denied, o.denied), c.denial()
	l.p95 = max(l.p95, o.p95)
	l.back = max(l.back, o.back)
	l.unitsLost, l.slotsLost = l.unitsLost+o.unitsLost, l.slotsLost+o.slotsLost
}

func (f *faultTable) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| fault | cells | decisions | local | %s | longest denial, of | p95 | back | units lost | slots lost |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n", strings.Join(faultAlgorithms, " | "))
	for _, row := range faultRows {
		l := f.rows[row.name]
		if l == nil {
			continue
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %.0f %% |", row.name, l.cells, l.decisions, 100*float64(l.fallbacks)/float64(max(l.decisions, 1)))
		for _, algorithm := range faultAlgorithms {
			if s, ok := l.share[algorithm]; ok {
				fmt.Fprintf(&b, " %.2f |", s)
			} else {
				b.WriteString(" |")
			}
		}
		fmt.Fprintf(&b, " %d of %d ms | %d ms | %d ms | %d | %d |\n", l.denied.Milliseconds(), l.stated.Milliseconds(), l.p95.Milliseconds(), l.back.Milliseconds(), l.unitsLost, l.slotsLost)
	}
	return b.String()
}
