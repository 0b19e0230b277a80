package main

import (
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/sluice-go/sluice/bench/loadgen"
)

// burst is bursts of n at a part of the capacity, after a second in which the limiter learns
// the cost of a request.
func (r rig) burst(n int, rate float64, d time.Duration, before ...loadgen.Phase) (string, error) {
	phases := slices.Concat([]loadgen.Phase{phase(rate, time.Second)}, before, []loadgen.Phase{{Rate: rate, Burst: n, Duration: d}})
	from := time.Duration(0)
	for _, p := range phases[:len(phases)-1] {
		from += p.Duration
	}
	all, err := r.run(0, phases...)
	return summary(after(all, from), err)
}

var parts = []float64{.15, .3, .5}

// burstTable has a row for each handler, burst and part of the capacity; each burst drains in time
// where the server without a limiter answers all.
func burstTable(r rig, works []string, sizes []int, parts []float64, cell func(r rig, n int, rate, capacity float64) (string, error)) error {
	for _, r.work = range works {
		capacity, err := r.full()
		if err != nil {
			return err
		}
		for _, n := range sizes {
			for _, part := range parts {
				if err := r.row(fmt.Sprintf("%s | %d | %.0f %%", r.work, n, 100*part), func(r rig) (string, error) { return cell(r, n, part*capacity, capacity) }); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func drained(n int, rate float64) time.Duration {
	return max(length(), time.Duration(3*float64(n)/rate*1e9))
}

func bursts(r rig) error {
	begin("Bursts\n\nRejected, and p99 of the others.", "handler", "burst", "of the capacity")
	return burstTable(r, []string{"50us", "500us", "5ms"}, []int{100, 200, 400, 1000}, parts, func(r rig, n int, rate, _ float64) (string, error) {
		return r.burst(n, rate, drained(n, rate))
	})
}

// largeBurst is followed by others that drain in time, from 1 s after it on.
func largeBurst(r rig) error {
	begin("Bursts after a large one\n\nA burst of the requests of 1 s, and then those of a tenth. Rejected of the latter, and p99 of the others.", "handler", "parts of a second", "of the capacity")
	return burstTable(r, []string{"500us", "2ms", "5ms"}, []int{10}, parts, func(r rig, n int, rate, capacity float64) (string, error) {
		tenth := int(capacity) / n
		large := loadgen.Phase{Rate: 10 * capacity, Burst: int(capacity), Duration: 150 * time.Millisecond}
		return r.burst(tenth, rate, 3*length(), large, loadgen.Phase{Rate: rate, Burst: tenth, Duration: time.Second})
	})
}

// idleConnections wait for their next request while bursts come on others.
func idleConnections(r rig) error {
	const idle = 3000
	begin(fmt.Sprintf("Bursts beside %d idle connections\n\nRejected, and p99 of the others.", idle), "handler", "burst", "of the capacity")
	return burstTable(r, []string{"50us", "100us"}, []int{200, 300}, []float64{.15, .5}, func(r rig, n int, rate, _ float64) (string, error) {
		for range idle {
			c, err := net.DialTimeout("tcp", r.addr, 2*time.Second)
			if err != nil {
				return "", err
			}
			defer func() { _ = c.Close() }()
		}
		return r.burst(n, rate, drained(n, rate))
	})
}
