package main

import (
	"fmt"
	"net/http"
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
func pools(r rig) error {
	fmt.Printf("\n## Pools behind the server\n\n.85 of the capacity for %v, the overload for %v, .85 for %v; clients hang up after their patience, the handler does the work all the same; an answer counts within %v. "+
		"Answers in time per second, of the capacity, in the first second of the overload and in the next three; then, of the demand, in the last two seconds; denied before the overload; p99 of the answers. "+
		"The capacity is that of the connections; that of the sleeps of the machine is 2 to 4 %% less.\n\n| processors | pool | load | patience |%s\n|---|---|---|---|",
		poolBefore, poolOver, poolAfter, slo, header())
	for range limiters() {
		fmt.Print("---|")
	}
	fmt.Println()
	for _, r.procs = range []int{1, 2} {
		for _, c := range poolCells {
			r.work = c.work
			if err := r.row(fmt.Sprintf("| %d | %s | %gx | %v |", r.procs, c.work, c.times, c.patience), func(r rig) string {
				answers, err := loadgen.Run(loadgen.Config{
					URL: r.addr, Timeout: c.patience, MaxOpen: 16000, Open: 500, Seed: 1,
					Phases: []loadgen.Phase{{Rate: .85 * c.capacity, Duration: poolBefore}, {Rate: c.times * c.capacity, Duration: poolOver}, {Rate: .85 * c.capacity, Duration: poolAfter}},
				})
				if err != nil {
					return err.Error()
				}
				return poolCell(answers, c.capacity)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

func poolCell(answers []loadgen.Answer, capacity float64) string {
	var took []time.Duration
	good := func(from, to time.Duration) (ok, all, denied float64) {
		for _, a := range answers {
			if a.At < from || a.At >= to {
				continue
			}
			all++
			switch {
			case a.OK(slo):
				ok++
				took = append(took, a.Took)
			case a.Status == http.StatusServiceUnavailable:
				denied++
			}
		}
		return ok, all, denied
	}
	_, before, denied := good(time.Second, poolBefore)
	first, _, _ := good(poolBefore, poolBefore+time.Second)
	over, _, _ := good(poolBefore+time.Second, poolBefore+poolOver)
	end := poolBefore + poolOver + poolAfter
	after, demand, _ := good(end-2*time.Second, end)
	p99 := time.Duration(0)
	if len(took) > 0 {
		slices.Sort(took)
		p99 = took[len(took)*99/100]
	}
	return fmt.Sprintf("%.2f, %.2f, %.2f; %.1f %%; %v", first/capacity, over/capacity/3, after/max(demand, 1), 100*denied/max(before, 1), p99.Round(time.Millisecond))
}
