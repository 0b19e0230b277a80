package main

import (
	"time"

	"github.com/sluice-go/sluice/bench/loadgen"
)

// steady is the load, of the capacity, before and after the overload.
const steady = .85

// aftermath is how long the load is steady again after the overload.
const aftermath = 5 * time.Second

// plan is when the load changes.
type plan struct {
	before, during, after time.Duration // no during: the load does not change
	settle                time.Duration // at the start of each phase, not counted
}

// planOf is a step to times the capacity, or a load below it for three times as
// long, since a few rejections in a hundred are to be counted.
func planOf(length time.Duration, times float64) plan {
	settle := min(2*time.Second, length/3)
	if times < 1 {
		return plan{before: 3 * length, settle: settle}
	}
	return plan{before: max(4*time.Second, length*6/10), during: length, after: aftermath, settle: settle}
}

func (p plan) end() time.Duration { return p.before + p.during + p.after }
func (p plan) calm() bool         { return p.during == 0 }

func (p plan) phases(capacity, times float64) []loadgen.Phase {
	if p.calm() {
		return []loadgen.Phase{{Rate: times * capacity, Duration: p.before}}
	}
	low := steady * capacity
	return []loadgen.Phase{{Rate: low, Duration: p.before}, {Rate: times * capacity, Duration: p.during}, {Rate: low, Duration: p.after}}
}

// watch measures how busy the server is during the overload, without its start
// and its end.
func (p plan) watch(s *server) float64 {
	if p.calm() {
		return 0
	}
	time.Sleep(p.before + p.settle)
	cpu, start := s.cpu(), time.Now()
	time.Sleep((p.during - p.settle) * 7 / 8)
	return (s.cpu() - cpu).Seconds() / time.Since(start).Seconds()
}
