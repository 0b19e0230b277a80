package adaptive

import (
	"math"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
)

// The comment of each constant lists what fails with another value: cells of the simulator ("make
// sim SIM=constants") or tests.
const (
	waitShare    = 0.7  // of the target, to spend in the queue: go-mix-2x, quota
	drainShare   = 0.85 // of the target, in which a burst drains: A10x, pauses
	minWide      = 20   // runnable goroutines while the load fits, at least; independent arrivals leave more in 1 of 30 moments: crowded-go-5ms-2x
	maxWide      = 96   // at most: go-.5ms-5x, pauses
	minClosed    = 6    // runnable goroutines in a standing overload: retries, go-.1ms-5x
	sharedClosed = 12.0 // the same if requests share connections, whose goroutines do a third of a request's work each: TestRunQueueClosedLimit
	polled       = 40.0 // a third of the connections that Go's poller hands out at a time: TestRunQueueBehindThePoller
	demandOpen   = 1.0  // where the limit begins to close: A10x, go-mix-2x
	demandClosed = 1.15 // where it is closed: batch-go-30ms-2x
	idleBelow    = 0.97 // use of the processors below which the limit closes less far: classes, go-.1ms-2x
	spareBelow   = 0.9  // use of the processors below which a queue that drains in time is no overload: TestRunQueueBesideIdleConnections
	closedTime   = 0.5  // s, in which the closed limit changes by a factor of e: quota, go-.5ms-10x

	usageMemory       = 0.2                          // s, of the use: go-.1ms-5x, quota
	queueUpdateEvery  = int64(10 * time.Millisecond) // classes, quota
	queueUpdateLatest = int64(time.Second)           // with any number of arrivals: batch-go-30ms-2x
	latelyMemory      = int64(time.Second)           // of the demand, once the limit decides: TestRunQueueAfterALargeBurst
	quotaEvery        = 10 * time.Second             // between readings of the quota: TestRunQueueWithinAQuota
	minArrivals       = 10                           // of an update: go-mix-2x, quota
	costMemory        = 5.0                          // s, of the processor time of a request: pauses, classes
	memoryRequests    = 100                          // of the demand: pod, go-30ms-0.85x
	minMemory         = 0.1                          // s, of the demand: go-.1ms-5x
	maxMemory         = 2.0                          // s: go-mix-10x, go-100ms-5x
	quietRate         = 100.0                        // completions per second and processor, below which the time of a request bounds its cost: TestRunQueueBesideOtherWork
	outsideHandler    = 100e-6                       // s, of processor time of a request outside its handler: TestRunQueueBesideOtherWork
)

// measured is the input for new limits.
type measured struct {
	target, cost    float64 // s; cost: processor time of a request
	procs, capacity float64 // processors; capacity: those that the process gets
	demand, usage   float64 // processor time of all arrivals, and of all work, as a share of capacity
	passing         float64 // admitted share of the arrivals
	waits           float64 // each request's waits in the queue
	denies          bool    // requests were denied
	over            float64 // s since the last limits
}

// queueLimits bounds the goroutines in the queue.
type queueLimits struct {
	closed    float64 // runnable goroutines in a standing overload
	runnable  int64   // current limit of them
	drainable int64   // runnable goroutines that are done within drainShare of the target
	harmless  int64   // the same, if each is a request and the process gets all processors
	drain     int64   // processor time within waitShare of the target, ns
}

// next returns the new limits and, if they deny because of overload, the cause.
func next(m measured, closed float64) (l queueLimits, reason algo.Cause) {
	drain := waitShare * m.target * m.capacity
	waiting, burst := min(drain/m.cost, noLimit), drainShare*m.target/m.cost // requests
	wide := min(max(waiting, minWide), maxWide)

	if m.usage >= idleBelow {
		closed *= math.Exp(-m.over / closedTime)
	} else if m.denies {
		closed *= math.Exp(m.over / closedTime)
	}
	closed = min(max(closed, min(max(waiting, 1), m.leastClosed())), wide)
	open := min((demandClosed-m.demand)/(demandClosed-demandOpen), 1)

	if m.demand > demandOpen {
		reason = cause.Processor
	}
	return queueLimits{
		closed:    closed,
		runnable:  int64(closed + (wide-closed)*open),
		drainable: int64(min(burst*m.capacity/m.waits, noLimit)),
		harmless:  int64(min(burst*m.procs, noLimit)),
		drain:     int64(drain * 1e9),
	}, reason
}

// leastClosed returns the closed limit that leaves no processor idle. Go's poller hands out at most
// 128 connections at a time; the others wait in the kernel, uncounted. So the limit admits, of
// batches of a third of that, the share that can be served. A higher limit would never let the
// kernel's queue drain where denials take most of the processor.
func (m *measured) leastClosed() float64 {
	if m.waits > 1 {
		return sharedClosed
	}
	return min(max(polled*m.passing, 1), minClosed)
}
