package adaptive

import (
	"math"
	"sync/atomic"
)

// expense holds decaying sums of processor time, s, and of completions.
type expense struct{ used, done float64 }

func (e *expense) add(keep, used, done float64) {
	e.used, e.done = keep*(e.used+used), keep*(e.done+done)
}

// learnCost adds the processor time and the completions of dt. Denials take processor time too, so
// the cost comes from moments without any. If all moments together show more than twice that cost,
// the work has become dearer.
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

// bounded returns cost, at most all processors for the duration of a request if requests are so few
// that other work may use most of the time.
func (q *runQueue) bounded(cost float64) float64 {
	if rtt := float64(q.rtt.Load()) / 1e9; rtt > 0 && q.all.done < quietRate*costMemory*q.procs {
		cost = min(cost, q.procs*(rtt+outsideHandler))
	}
	return cost
}

// memory returns the span over which the demand is averaged, in s. A sum of n unequal requests is
// as certain as one of n * mean^2 / (mean of squares) equal ones.
func (q *runQueue) memory() float64 {
	mean := float64(q.rtt.Load()) / 1e3
	unequal := max(float64(q.square.Load())/max(mean*mean, 1), 1)
	return min(max(memoryRequests*unequal*q.cost, minMemory), maxMemory)
}

// average updates an exponential mean. Concurrent samples may lose one another.
func average(mean *atomic.Int64, x int64) {
	if was := mean.Load(); was == 0 {
		mean.Store(x)
	} else if change := (x - was) / memoryRequests; change != 0 {
		mean.Store(max(was+change, 1))
	}
}
