package main

import (
	"errors"
	"time"

	"github.com/sluice-go/sluice/bench/loadgen"
)

// sustained is the highest rate that a server without a limiter serves in time. The throughput of a
// closed loop is only where the trials start: it has few connections, and collects garbage for few.
func (r rig) sustained() (float64, error) {
	r = r.bare()
	rate, err := r.capacity(r.busy(), 3*time.Second)
	if err != nil {
		return 0, err
	}
	return highest(rate, r.sustains)
}

// highest goes down by 5 % until a rate is sustained.
func highest(rate float64, sustains func(rate float64) (bool, error)) (float64, error) {
	for ; rate >= 1; rate *= .95 {
		if ok, err := sustains(rate); ok || err != nil {
			return rate, err
		}
	}
	return 0, errors.New("the server without a limiter serves no rate in time")
}

// sustains reports whether a new server answers 98 % within half of the SLO, after a second of a lower
// load. The requests come at even distances, and the other half is for those that do not. A rate that
// is 5 % too high misses it in the twelve SLOs of the trial.
func (r rig) sustains(rate float64) (ok bool, err error) {
	slo := sloOf(r.work)
	err = r.with(func(r rig) error {
		all, err := r.run(openBefore, phase(steady*rate, time.Second), loadgen.Phase{Rate: rate, Burst: 1, Duration: max(12*slo, 2*time.Second)})
		ok = share(after(all, time.Second), inTime(slo/2)) >= .98
		return err
	})
	return ok, err
}

// bare is the rig without a limiter.
func (r rig) bare() rig {
	r = r.as("none")
	r.args = nil
	return r
}

// capacity is the throughput without a limiter of a closed loop of n.
func (r rig) capacity(n int, d time.Duration) (rate float64, err error) {
	err = r.bare().with(func(r rig) error {
		if _, err := r.closed(n, d/6); err != nil {
			return err
		}
		start := time.Now()
		all, err := r.closed(n, d)
		rate = float64(count(all, served)) / time.Since(start).Seconds()
		if err == nil && rate == 0 {
			err = errors.New("the server without a limiter answered nothing")
		}
		return err
	})
	return rate, err
}
