package adaptive

// costOfRequest is the processor time per completion. With few requests most of the time
// may be other work's, but none uses more than all processors for its duration.
func (q *runQueue) costOfRequest() float64 {
	cost := q.used / q.done
	if rtt := float64(q.rtt.Load()) / 1e9; rtt > 0 && q.done < quietRate*costMemory*q.procs {
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
