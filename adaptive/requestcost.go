package adaptive

import (
	"math"
	"sync/atomic"
)

// expense is a decaying sum of processor time, s, and of completions.
type expense struct{ used, done float64 }

func (e *expense) add(keep, used, done float64) {
	e.used, e.done = keep*(e.used+used), keep*(e.done+done)
}

// learnCost takes in the processor time and the completions of dt. Denials take processor time
// too, so the cost of a request is that of moments without any. Where it seems to be more than
// twice as much in all moments, the work is dearer.
func (q *runQueue) learnCost(dt, used float64, denies bool) {
	keep, done := math.Exp(-dt/costMemory), float64(q.completed.Swap(0))
	q.all.add(keep, used, done)
	if !denies {
		q.calm.add(keep, used, done)
	}
	if q.all.done == 0 {
		return
	}
	q.cost = q.bounded(q.all.used / q.all.done)
	if q.calm.done > 0 {
		q.cost = max(min(q.calm.used/q.calm.done, q.cost), q.cost/2)
	}
}

// bounded is a cost of at most all processors for the duration of a request, where requests are
// so few that most of the time may be other work's.
func (q *runQueue) bounded(cost float64) float64 {
	if rtt := float64(q.rtt.Load()) / 1e9; rtt > 0 && q.all.done < quietRate*costMemory*q.procs {
		cost = min(cost, q.procs*(rtt+outsideHandler))
	}
	return cost
}

// memory of the demand, s. A sum of n unequal requests is as certain as one of
// n * mean^2 / (mean of squares) equal ones.
func (q *runQueue) memory() float64 {
	mean := float64(q.rtt.Load()) / 1e3
	unequal := max(float64(q.square.Load())/max(mean*mean, 1), 1)
	return min(max(memoryRequests*unequal*q.cost, minMemory), maxMemory)
}

// average keeps an exponential mean. Concurrent samples may lose one another.
func average(mean *atomic.Int64, x int64) {
	if was := mean.Load(); was == 0 {
		mean.Store(x)
	} else if change := (x - was) / memoryRequests; change != 0 {
		mean.Store(max(was+change, 1))
	}
}
