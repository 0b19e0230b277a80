package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-go/sluice/bench/loadgen"
)

// Pools behind the service, as in bench/sim/pools.
var poolCells = []struct {
	work     string
	capacity float64 // requests per second
	times    float64
	patience time.Duration
}{
	{"pool-4-50ms", 80, 5, 500 * time.Millisecond},
	{"pool-4-50ms", 80, 2, 2 * time.Second},
	{"pool-4-50ms", 80, 10, time.Second},
	{"pool-20-10ms", 2000, 2, 500 * time.Millisecond},
	{"pool-10-20ms", 500, 3, 500 * time.Millisecond},
	{"pool-10-20ms", 500, 5, 300 * time.Millisecond},
	{"pool-1-2ms", 500, 5, time.Second},
}

const poolBefore, poolOver, poolAfter = 3 * time.Second, 4 * time.Second, 3500 * time.Millisecond

// pools overloads a pool behind a server, with clients that hang up.
func pools(r rig) {
	begin(fmt.Sprintf("Pools behind the server\n\n.85 of the capacity for %v, the overload for %v, .85 for %v; clients hang up after their patience, the handler does the work all the same; an answer counts within %v. "+
		"Answers in time per second, of the capacity, in the first second of the overload and in the next three; then, of the demand, in the last two seconds; denied before the overload; p99 of the answers. "+
		"The capacity is that of the connections; that of the sleeps of the machine is 2 to 4 %% less.", poolBefore, poolOver, poolAfter, late),
		"processors", "pool", "load", "patience")
	for _, r.procs = range []int{1, 2} {
		for _, c := range poolCells {
			r.work, r.patience = c.work, c.patience
			r.row(fmt.Sprintf("%d | %s | %gx | %v", r.procs, c.work, c.times, c.patience), func(r rig) (string, error) {
				all, err := r.run(500, phase(.85*c.capacity, poolBefore), phase(c.times*c.capacity, poolOver), phase(.85*c.capacity, poolAfter))
				return poolCell(all, c.capacity), err
			})
		}
	}
}

func poolCell(all []loadgen.Answer, capacity float64) string {
	const end = poolBefore + poolOver + poolAfter
	good := func(from, to time.Duration) float64 { return float64(count(between(all, from, to), inTime(late))) }
	_, p99 := quantiles(slices.DeleteFunc(slices.Clone(all), func(a loadgen.Answer) bool { return !a.OK(late) }))
	return fmt.Sprintf("%.2f, %.2f, %.2f; %.1f %%; %v", good(poolBefore, poolBefore+time.Second)/capacity,
		good(poolBefore+time.Second, poolBefore+poolOver)/capacity/3, share(between(all, end-2*time.Second, end), inTime(late)),
		100*share(between(all, time.Second, poolBefore), rejected), p99.Round(time.Millisecond))
}
