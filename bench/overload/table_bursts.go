package main

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/bench/loadgen"
)

// bursts come at a part of the capacity, after a second in which the limiter learns the cost of a
// request; each drains in time where the server without a limiter answers all.
func bursts(r rig) {
	begin("Bursts\n\nRejected, and p99 of the others.", "handler", "burst", "of the capacity")
	for _, r.work = range []string{"50us", "500us", "5ms"} {
		capacity := r.full()
		for _, n := range []int{100, 200, 400, 1000} {
			for _, part := range []float64{.15, .3, .5} {
				rate := part * capacity
				r.row(fmt.Sprintf("%s | %d | %.0f %%", r.work, n, 100*part), func(r rig) (string, error) {
					drained := max(length(), time.Duration(3*float64(n)/rate*1e9))
					all, err := r.run(0, phase(rate, time.Second), loadgen.Phase{Rate: rate, Burst: n, Duration: drained})
					return summary(after(all, time.Second), err)
				})
			}
		}
	}
}
