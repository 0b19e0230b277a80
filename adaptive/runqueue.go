package adaptive

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/machine"
	"github.com/sluice-go/sluice/internal/wiring"
)

// RunQueue limits a service whose bottleneck is the processor. It denies a request if more goroutines
// are ready to run, when the request's goroutine first runs, than a limit allows: such requests wait in
// Go, in front of their handlers, where no limit on requests in flight sees them.
//   - It denies nothing while the queue drains in time: the runnable goroutines, each counted as a
//     request, would finish within .85 of the target ([WithTarget]) on the process's part of the
//     processors (a third of them if requests share connections, see [Limiter.Multiplexed]). In addition
//     they must drain on all processors, or a tenth of the processor time must have been idle lately
//     (three hundredths while the demand is at most 100 %). Otherwise the limit decides, until the mean
//     demand of about a second is at most 100 %.
//   - The limit is as many goroutines as take seven tenths of the target, 20 to 96. As the demand grows
//     from 100 % to 115 % it closes to 6, to 12 if requests share connections, or to fewer if these take
//     longer or less than a seventh of the requests can be served. It closes less far while it leaves
//     processors idle.
//   - The demand is the rate of arrivals times the processor time per completion, a mean over the time
//     of 100 requests, 0.1 to 2 s, in moments without denials. The process gets GOMAXPROCS processors,
//     or less by the quota of its control group, read every 10 s, or by what other processes take.
//
// A burst or a closed loop that drains in time passes; a standing overload closes the gate:
//
//	            burst               overload
//	arrivals    _█___________________▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅_______
//	queue       _█▇▅▃▁_______________▂▅███▃▂▂▂▂▂▂▂▂▂▂▂_______
//	limit       ‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾╲________________╱‾‾
//	denied      ______________________▁▂▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄______
//
// A cost above 1 counts as 1. If runtime/metrics lacks the number of runnable goroutines (logged once),
// goroutines above the lowest number of the last minute count instead. Where the processor time of the
// process is unknown (neither Unix nor Windows), all time counts. Options: [WithTarget], [WithHook].
func RunQueue(opts ...Option) Strategy {
	q, err := newRunQueue("RunQueue", opts)
	if err != nil {
		return invalid{err}
	}
	return q
}

type runQueue struct {
	wiring.Owned
	machine machine.Machine
	target  float64 // s
	hook    func(State)

	limit     atomic.Int64 // of runnable goroutines
	drainable atomic.Int64 // this and the next two: see queueLimits
	harmless  atomic.Int64
	drain     atomic.Int64
	next      atomic.Int64 // instant of the next update
	waits     atomic.Int64 // each request's waits in the run queue
	_         [16]byte     // every request writes the fields below

	arrived, rejected, completed atomic.Int64 // since the last update
	lacked                       atomic.Int64 // arrivals since then that found no slot
	least                        atomic.Int64 // runnable goroutines since then
	lastRead                     atomic.Int64 // runnable goroutines
	rtt, square                  atomic.Int64 // mean of successes, ns, and of its square, us*us; 0: unknown
	reading, decides, spare      atomic.Bool  // decides: the limit decides, because the queue did not drain in time

	mu            sync.Mutex // guards the fields below
	procs         float64    // processors, within the quota
	capacity      float64    // of those, for this process
	measured      int64      // instant at which procs was measured
	updated       int64
	cpu           time.Duration // used until then
	busy          int64         // instant since which, or since the last update, the queue may have been busy
	busyCPU       time.Duration // used until then
	all, calm     expense       // calm: of moments without denials
	cost          float64       // processor time of a request, s; 0: unknown
	demand        float64       // processor time of all arrivals, as a share of capacity
	lately        float64       // its mean over latelyMemory, since the limit decides
	usage, recent float64       // of capacity; recent: over half of the time in which a burst drains
	passing       float64       // admitted share of the arrivals
	closed        float64       // closed limit
	reason        algo.Cause    // Processor in an overload
}

func newRunQueue(constructor string, opts []Option) (*runQueue, error) {
	set, err := wiring.Read(constructor, opts, "WithTarget", "WithHook")
	if err != nil {
		return nil, err
	}
	target, m := wiring.Get(set, "WithTarget", defaultTarget), set.Machine()
	if target < time.Millisecond || target > time.Hour {
		return nil, fmt.Errorf("%s: target is %v, want 1ms to 1h", constructor, target)
	}
	hook := wiring.Get(set, "WithHook", func(State) {})
	if hook == nil {
		return nil, fmt.Errorf("%s: WithHook: the function is nil", constructor)
	}
	now, procs := m.Now(), machine.Capacity(m)
	q := &runQueue{machine: m, target: target.Seconds(), hook: hook, closed: minClosed, usage: 1, passing: 1, updated: now, measured: now, procs: procs, capacity: procs}
	q.cpu, _ = q.machine.CPU()
	q.waits.Store(1)
	q.set(0, false)
	return q, nil
}

// waiting reports whether goroutines waited for the processor at the last reading.
func (q *runQueue) waiting() bool { return q.lastRead.Load() != 0 }

// drains returns how many goroutines, and how much processor time in ns, finish within the target.
func (q *runQueue) drains() (goroutines, time int64) { return q.drainable.Load(), q.drain.Load() }

// arrive counts n more requests than have arrived: a denied one may be worth several.
func (q *runQueue) arrive(n int64) { q.arrived.Add(max(n, 0)) }

func (q *runQueue) Limit() int           { return noLimit }
func (q *runQueue) On(m machine.Machine) { q.machine = m }

// Admits implements [Gate].
func (q *runQueue) Admits(at time.Duration) bool {
	q.arrived.Add(1)
	if int64(at) >= q.next.Load() {
		q.update(int64(at))
	}
	if q.exceeded() {
		q.rejected.Add(1)
		return false
	}
	return true
}

// exceeded reports whether to deny a request, see [RunQueue]. Reading the runnable goroutines takes
// a lock of the runtime, so it only happens while all goroutines exceed a quarter of what drains.
// It notes the lowest reading. Once it denies, the limit decides until learnDemand ends that.
func (q *runQueue) exceeded() bool {
	runnable, drainable := int64(0), q.drainable.Load()
	all, ok := q.machine.Goroutines()
	if !ok || int64(all) > drainable/4 {
		runnable = q.runnable()
	}
	if runnable < q.least.Load() {
		q.least.Store(runnable)
	}
	drains := ok && runnable <= drainable && !q.decides.Load() && (int64(all) <= q.harmless.Load() || q.spare.Load())
	if runnable <= q.limit.Load() || drains {
		return false
	}
	q.decides.Store(true)
	return true
}

// runnable returns the number of runnable goroutines, 0 if unknown; no request waits for another
// one's reading.
func (q *runQueue) runnable() int64 {
	if q.reading.CompareAndSwap(false, true) {
		n, ok := q.machine.Runnable()
		if !ok {
			n = 0
		}
		q.lastRead.Store(int64(n))
		q.reading.Store(false)
	}
	return q.lastRead.Load()
}

// Full implements [Gate].
func (q *runQueue) Full() bool {
	if !q.exceeded() {
		return false
	}
	q.arrived.Add(1)
	q.rejected.Add(1)
	if at := q.machine.Now(); at >= q.next.Load() {
		q.update(at) // if every request is denied here, nothing else updates
	}
	return true
}

// Admitted implements [Follower].
func (q *runQueue) Admitted(time.Duration, int64, int64) {}

// Finished implements [Follower].
func (q *runQueue) Finished(Sample, int64) { q.completed.Add(1) }

// Denied counts a request that found no slot and so uses no processor. A peek is no arrival.
func (q *runQueue) Denied(_ time.Duration, n, _ int64, _ algo.Cause) {
	if n > 0 {
		q.lacked.Add(1)
	}
}

// Observe updates the mean response time.
func (q *runQueue) Observe(s Sample) {
	average(&q.rtt, int64(s.RTT))
	average(&q.square, s.RTT.Microseconds()*s.RTT.Microseconds())
}

// update learns and sets the limit. Requests call it: a goroutine would itself wait in the queue.
func (q *runQueue) update(at int64) {
	if !q.mu.TryLock() {
		return
	}
	was := q.reason
	q.measure(at)
	changed := q.reason != was
	q.mu.Unlock()
	if changed {
		q.hook(q.State())
	}
}

// measure is update with q.mu held.
func (q *runQueue) measure(at int64) {
	pause := at - q.next.Swap(at+queueUpdateEvery)                           // without an arrival
	if float64(pause)/1e9 > float64(q.lastRead.Load()+1)*q.cost/q.capacity { // the queue has emptied
		q.busy = at
		q.busyCPU, _ = q.machine.CPU()
	}
	if q.arrived.Load()-q.lacked.Load() < minArrivals && at-q.updated < queueUpdateLatest {
		return
	}
	if at-q.measured >= int64(quotaEvery) {
		q.procs, q.measured = machine.Capacity(q.machine), at
	}
	dt, denies := q.learn(at)
	if pause > queueUpdateLatest { // otherwise the few requests around the pause would represent it
		q.demand *= math.Exp(-float64(pause) / 1e9 / q.memory())
	}
	q.set(dt, denies)
}

// learn evaluates the time since the last update, dt seconds, and reports whether requests were
// denied in it.
func (q *runQueue) learn(at int64) (dt float64, denies bool) {
	dt = float64(max(at-q.updated, 1)) / 1e9
	used := dt * q.procs
	cpu, known := q.machine.CPU()
	if known {
		used, q.cpu = (cpu - q.cpu).Seconds(), cpu
	}
	lacked := q.lacked.Swap(0) // these are no arrivals
	arrived := float64(max(q.arrived.Swap(0)-lacked, 1))
	rejected := float64(q.rejected.Swap(0) + lacked)
	stood := q.least.Swap(noLimit) > 1 // net/http starts one for each request, to read on
	denies = rejected > 0

	q.learnCost(dt, used, denies)
	a := 1 - math.Exp(-dt/(q.memory()+minArrivals*dt/arrived))
	q.passing += a * (max(1-rejected/arrived, 0) - q.passing)
	if got := used / dt; got > q.capacity {
		q.capacity += a * (got - q.capacity)
	} else if busy := float64(at-q.busy) / 1e9; known && stood && busy > 0 && arrived >= minArrivals {
		q.capacity += (1 - math.Exp(-busy/q.memory())) * ((q.cpu-q.busyCPU).Seconds()/busy - q.capacity)
	}
	q.capacity = min(max(q.capacity, q.procs/100), q.procs)
	q.busy, q.busyCPU = at, q.cpu
	q.usage += (1 - math.Exp(-dt/usageMemory)) * (used/dt/q.capacity - q.usage)
	q.recent += (1 - math.Exp(-2*dt/(drainShare*q.target))) * (used/dt/q.capacity - q.recent)
	q.learnDemand(dt, a, arrived/dt)
	q.spare.Store(known && (q.recent < spareBelow || q.recent < idleBelow && q.demand <= demandOpen))
	q.updated = at
	return dt, denies
}

// learnDemand takes in a rate of arrivals over dt with weight a.
func (q *runQueue) learnDemand(dt, a, rate float64) {
	if !q.decides.Load() {
		q.lately = demandClosed
	}
	q.demand = min(q.demand+a*(rate*q.cost/q.capacity-q.demand), demandClosed)
	q.lately += (1 - math.Exp(-dt*1e9/float64(latelyMemory))) * (q.demand - q.lately)
	if q.lately <= demandOpen {
		q.decides.Store(false)
	}
}

// set sets the limits, dt seconds after the last ones.
func (q *runQueue) set(dt float64, denies bool) {
	l, reason := next(measured{
		target: q.target, cost: q.cost, procs: q.procs, capacity: q.capacity, demand: q.demand, usage: q.usage,
		passing: q.passing, waits: float64(q.waits.Load()), denies: denies, over: dt,
	}, q.closed)
	q.closed, q.reason = l.closed, reason
	q.limit.Store(l.runnable)
	q.drainable.Store(l.drainable)
	q.harmless.Store(l.harmless)
	q.drain.Store(l.drain)
}
