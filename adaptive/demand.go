package adaptive

import (
	"math"
	"time"

	"github.com/sluice-go/sluice/internal/machine"
)

// queueCounts are totals since the start.
type queueCounts struct {
	arrived, passed, completed, elsewhere uint64
	cpu                                   time.Duration
}

// measure finds out how much processor time there is.
func (q *runQueue) measure(at int64) {
	q.procs, q.measured = machine.Capacity(q.machine), at
}

// learn takes in the time since the last update.
func (q *runQueue) learn(at int64) {
	is := q.counts()
	dt := float64(max(at-q.updated, 1)) / 1e9
	used := (is.cpu - q.before.cpu).Seconds()
	elsewhere := float64(is.elsewhere - q.before.elsewhere)
	arrived := max(float64(is.arrived-q.before.arrived)-elsewhere, 1)
	passed := max(float64(is.passed-q.before.passed)-elsewhere, 0)
	denials := (max(arrived-passed, 0) + elsewhere) * denialCost

	keep := math.Exp(-dt / costMemory)
	// The use since the last update is spread over that time and decays too: the
	// use of an idle hour must not be the cost of the first requests after it.
	fresh := (1 - keep) * costMemory / dt
	q.used = max(q.used*keep+fresh*(used-denials), 0)
	q.done = q.done*keep + fresh*float64(is.completed-q.before.completed)
	if q.done > 0 {
		q.cost = q.costOfRequest()
	}
	a := 1 - math.Exp(-dt/(q.memory()+minArrivals*dt/arrived))
	q.share += a * (min(max(passed/arrived, minShare), 1) - q.share)
	q.demand += a * (min(arrived*q.cost/dt/q.procs, maxDemand) - q.demand)
	n, _ := q.machine.Runnable()
	q.queue += a * (float64(n)/q.procs - q.queue)
	q.moveClosed(dt, used/dt/q.procs, passed < arrived)
	q.before, q.updated = is, at
}

// costOfRequest is the processor time of the process for each completion. Where few
// requests complete, most of it may be that of other work in the process; but no
// request uses more than all processors for as long as it takes.
func (q *runQueue) costOfRequest() float64 {
	cost := q.used / q.done
	if rtt := float64(q.rtt.Load()) / 1e9; rtt > 0 && q.done < quietRate*costMemory*q.procs {
		cost = min(cost, q.procs*(rtt+outsideHandler))
	}
	return cost
}

func (q *runQueue) counts() queueCounts {
	c := queueCounts{
		arrived: q.arrived.Load(), passed: q.passed.Load(),
		completed: q.completed.Load(), elsewhere: q.elsewhere.Load(),
		cpu: q.before.cpu,
	}
	if cpu, ok := q.machine.CPU(); ok {
		c.cpu = cpu
	}
	return c
}

// memory is the time of 100 requests, within bounds, in seconds.
func (q *runQueue) memory() float64 { return min(max(memoryRequests*q.cost, minMemory), maxMemory) }

// relax accounts for a pause in seconds without requests, which the few requests
// around it would represent otherwise.
func (q *runQueue) relax(pause float64) {
	a := 1 - math.Exp(-pause/q.memory())
	q.demand -= a * q.demand
	q.share += a * (1 - q.share)
}

// allowed is the limit of runnable goroutines.
func (q *runQueue) allowed() float64 {
	wide := float64(maxWide)
	if q.cost > 0 {
		wide = min(wide, max(waitShare*q.target*q.procs/q.cost, minWide))
	}
	closed := min(q.closed, wide)
	return closed + (wide-closed)*q.openness()
}

// drainable is the number of requests that the processors complete in the share of
// the target that may be spent in the queue.
func (q *runQueue) drainable() int64 {
	if q.cost == 0 {
		return noLimit
	}
	return int64(min(waitShare*q.target*q.procs/q.cost, noLimit))
}

// moveClosed raises the closed limit while requests are denied although the
// processor is not fully used, and lowers it again when it is. The former happens
// where goroutines that are no requests queue too, such as the transport goroutines
// of gRPC.
func (q *runQueue) moveClosed(dt, usage float64, denies bool) {
	q.usage += (1 - math.Exp(-dt/.2)) * (usage - q.usage)
	switch {
	case denies && q.usage < idleBelow:
		q.closed *= math.Exp(dt / closedTime)
	case q.usage > fullAbove:
		q.closed *= math.Exp(-dt / closedTime)
	}
	most := float64(minClosed)
	if q.cost > 0 {
		most = min(max(idleShare*q.target*q.usage/q.cost, minClosed), maxWide/2)
	}
	q.closed = min(max(q.closed, minClosed), most)
}

// openness is 1 while the load fits and 0 under overload.
func (q *runQueue) openness() float64 {
	open := min((demandClosed-q.demand)/(demandClosed-demandOpen), (q.share-shareClosed)/(shareOpen-shareClosed))
	return min(max(open, 0), 1)
}
