package main

import (
	"fmt"
	"time"
)

// The targets were set before the code was written.
const (
	leastOfLeft    = .93
	mostRejected   = .01
	latestRecovery = 2 * time.Second
	// mostLost of the clients may give up at a server that rejects everything, else the
	// generator is the limit.
	mostLost = .01
)

// promise is the result of one target for one limiter and handler, in the
// worst of the cells.
type promise struct {
	is    float64
	limit float64
	least bool   // the limit is a least, not a most
	where string // "": nothing was measured
	show  func(float64) string
}

// worse takes in a cell.
func (t *promise) worse(is float64, where string) {
	if t.where == "" || (is < t.is) == t.least {
		t.is, t.where = is, where
	}
}

func (t promise) met() bool {
	if t.least {
		return t.is >= t.limit
	}
	return t.is <= t.limit
}

// String is the value, where, and by how much it misses.
func (t promise) String() string {
	if t.where == "" {
		return ""
	}
	s := t.show(t.is) + " " + t.where
	if t.met() {
		return s
	}
	miss := t.is - t.limit
	if t.least {
		miss = -miss
	}
	return fmt.Sprintf("MISSED by %s: %s", t.show(miss), s)
}

func ratio(v float64) string   { return fmt.Sprintf("%.2f", v) }
func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }
func inSeconds(v float64) string {
	return time.Duration(v * 1e9).Round(time.Millisecond).String()
}

// targetsOf are the four targets for one limiter in one section.
func (r results) targetsOf(s section, limiter string) (all [4]promise) {
	slo := sloOf(s.work)
	all = [4]promise{
		{limit: leastOfLeft, least: true, show: ratio},
		{limit: slo.Seconds(), show: inSeconds},
		{limit: mostRejected + r.missed(s), show: percent},
		{limit: latestRecovery.Seconds(), show: inSeconds},
	}
	for _, f := range r.of(s) {
		if f.Limiter != limiter || f.Failed != "" || r.beyond(f) {
			continue
		}
		load := fmt.Sprintf("%gx", f.Times)
		at := "at " + load
		if f.P99 > 0 {
			all[1].worse(f.P99.Seconds(), at)
		}
		if f.Times < 1 {
			all[2].worse(f.Before, at)
			continue
		}
		all[2].worse(f.Before, "before "+load)
		all[2].worse(f.After, "after "+load)
		all[3].worse(f.Recovery.Seconds(), "after "+load)
		if f.Left > 0 {
			all[0].worse(f.ofLeft(), at)
		}
	}
	return all
}

// beyond reports a cell that the generator could not measure: it could not carry the load
// even to a server that rejects everything, and the limiter did not relieve it either.
func (r results) beyond(f figures) bool {
	if f.Limiter == "rejects" || f.Limiter == "none" || f.GaveUp <= mostLost {
		return false
	}
	all, ok := r.find(f.Work, "rejects", f.Times)
	return ok && all.Transport == f.Transport && all.GaveUp > mostLost
}

// missed is the share of the requests that miss the SLO at a load below 1 without a limiter.
func (r results) missed(s section) float64 {
	for _, f := range r.of(s) {
		if f.Limiter == "none" && f.Failed == "" && f.Times < 1 {
			return 1 - f.Goodput/f.Times
		}
	}
	return 0
}
