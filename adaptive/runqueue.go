package adaptive

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/machine"
)

// NewRunQueue makes a strategy for services whose bottleneck is the processor:
// it looks at the queue in front of it. A request is denied if more goroutines
// are ready to run than a limit allows, at the moment that its own runs for the
// first time.
//
// A limit on requests in flight does not protect such a service in Go. A handler
// that burns less than the scheduler's time slice of 10 ms runs to its end once
// it has begun, so about one request for each processor is in flight whatever
// the load; the others wait as runnable goroutines before the handler, where no
// such limit sees them, until their callers have given up.
//
// The limit is wide while the load fits, so that no burst is cut that the service
// can work off: as many as take seven tenths of the target ([WithTarget]), on one
// processor 20 to 96. It closes to 6 as more is asked than the service can do:
// when the processor time that all arrivals would take exceeds what there is, by
// 15 % to be closed entirely; or when the share that is admitted falls below .8,
// for processors that others use too. Each further processor adds 1 to the
// closed limit, and 4 to 16 to the wide one. Both signs of overload are
// exponential means over the time of 100 requests, .1 to 4 s, that a single burst
// does not move far. What a request takes is measured: the process' processor
// time for each completion. There is as much of it as GOMAXPROCS says or, where
// that is less, the quota of the control group, read every 10 s: a container with
// a limit of 500m has half a processor, though Go runs on two. While the strategy
// denies and leaves the processors idle it closes less far, as far as a quarter of
// the target allows.
//
// It has no opinion on how many are in flight: Limit is 2147483647, and what
// waits for another service is not limited. [Default] adds that. A cost above 1
// weighs like 1 here. Where the number of runnable goroutines cannot be read it
// admits everything, and [Limiter.Explain] says so; where the processor time of the
// process cannot (neither Unix nor Windows), only the admitted share closes it.
//
// Each request reads the number of runnable goroutines: some 60 ns, under a lock
// of the Go runtime's that all processors share.
//
// Options: [WithTarget].
func NewRunQueue(opts ...Option) (Strategy, error) {
	q, err := configureRunQueue("NewRunQueue", opts)
	if err != nil {
		return nil, err
	}
	return q, nil
}

func configureRunQueue(who string, opts []Option) (*runQueue, error) {
	set := settings{min: 1, max: noLimit, target: defaultTarget}
	if err := configure(who, &set, opts, "WithTarget"); err != nil {
		return nil, err
	}
	if set.target < time.Millisecond || set.target > time.Hour {
		return nil, fmt.Errorf("adaptive: %s: the target is %v, want 1ms to 1h", who, set.target)
	}
	return newRunQueue(set.target), nil
}

// WithTarget sets the response time beyond which an answer is of no use, 1 ms
// to 1 h. The default is 500 ms.
func WithTarget(d time.Duration) Option {
	return Option{"WithTarget", func(s *settings) { s.target = d }}
}

const (
	defaultTarget = 500 * time.Millisecond

	// Runnable goroutines. Without overload, arrivals that are independent of
	// one another leave more than 20 of them at .85 of the capacity in 1 of 30
	// moments (processor sharing), so that .5 % are denied. Go's poller hands out
	// 128 connections at a time, and only when nothing is runnable; under
	// overload the limit must be well below the admitted share of that, or
	// requests grow old in the kernel. All that takes hardly more on several
	// processors than on one.
	wideLeast, wideMost, narrowest  = 20, 96, 6
	moreLeast, moreMost, moreNarrow = 4, 16, 1  // for each further processor
	waitShare, idleShare            = 0.7, 0.25 // of the target, to be spent in the queue

	rejectCost = 15e-6 // seconds of processor time that a denial takes
	lookAgain  = int64(10 * time.Millisecond)
	lookLatest = int64(time.Second) // and with how few arrivals whatsoever
	fewArrived = 10
	costMemory = 10.0 // seconds over which the cost of a request is a mean

	excuseMemory = 2.0 // seconds

	// The use of the processors below which a closed limit is too low, above
	// which it may be lower, and the seconds in which it moves by a factor of e.
	idleBelow, fullAbove, narrowTime = 0.96, 0.98, 0.5

	// Where the limit begins to close, and where it is closed.
	demandOpen, demandClosed = 1.0, 1.15
	shareOpen, shareClosed   = 0.8, 0.6
	// What one look can at most say, so that the way back from a load of ten
	// times the capacity is not longer than from twice.
	demandMost, shareLeast = 1.5, 0.55
)

type runQueue struct {
	target float64 // seconds

	limit atomic.Int64 // most runnable goroutines
	next  atomic.Int64 // when to look again
	_     [48]byte     // what follows is written by every request

	arrived, passed, completed atomic.Uint64
	elsewhere                  atomic.Uint64 // passed here and denied by another
	_                          [32]byte

	mu     sync.Mutex // guards what follows
	procs  float64    // there are, less what a quota withholds
	looked int64      // when procs was
	last   int64
	before runCounts
	used   float64 // decaying sum of processor time, seconds
	done   float64 // decaying sum of completions
	cost   float64 // seconds of processor time for each completion; 0: unknown
	share  float64 // of the arrivals that passed
	demand float64 // processor time that all arrivals would take, of what there is
	queued float64 // mean number of runnable goroutines for each processor
	peak   float64 // the highest that was lately, decaying
	busyAt float64 // mean use of the processors
	closed float64 // limit when closed, on one processor
}

// runCounts is what has happened so far.
type runCounts struct {
	arrived, passed, completed, elsewhere uint64
	cpu                                   time.Duration
}

func newRunQueue(target time.Duration) *runQueue {
	q := &runQueue{target: target.Seconds(), share: 1, closed: narrowest, last: now()}
	q.before.cpu, _ = machine.CPU()
	q.measure(q.last)
	q.limit.Store(int64(q.allowed()))
	return q
}

func (q *runQueue) Limit() int     { return noLimit }
func (q *runQueue) Observe(Sample) {}

func (q *runQueue) admits(at int64) bool {
	q.arrived.Add(1)
	if at >= q.next.Load() {
		q.look(at)
	}
	if n, ok := machine.Runnable(); ok && int64(n) > q.limit.Load() {
		return false
	}
	q.passed.Add(1)
	return true
}

// peek reports whether a request would be denied. One that would be has been
// turned away by whoever asked, and so has arrived.
func (q *runQueue) peek() (full bool) {
	n, ok := machine.Runnable()
	if full = ok && int64(n) > q.limit.Load(); full {
		q.arrived.Add(1)
		// If all are turned away here, nobody else looks.
		if at := now(); at >= q.next.Load() {
			q.look(at)
		}
	}
	return full
}

func (q *runQueue) busy() bool {
	n, ok := machine.Runnable()
	return ok && int64(n)*2 > q.limit.Load()
}

func (q *runQueue) admitted(_, _, _ int64) {}
func (q *runQueue) finished(_, _ int64)    { q.completed.Add(1) }

// denied counts those who passed here and had no place: the processor will not
// be asked for what they would take.
func (q *runQueue) denied(by cause, _ int64) {
	switch by {
	case byLimit, byFullQueue, byLongWait:
		q.elsewhere.Add(1)
	}
}

// look takes stock of what happened since the last look, and sets the limit. It
// is done by whoever comes when it is time: a goroutine of its own would itself
// wait in the queue.
func (q *runQueue) look(at int64) {
	if !q.mu.TryLock() {
		return
	}
	defer q.mu.Unlock()
	pause := at - q.next.Swap(at+lookAgain) // nobody has come since then
	if q.arrived.Load()-q.before.arrived < fewArrived && at-q.last < lookLatest {
		return
	}
	if at-q.looked >= int64(quotaEvery) {
		q.measure(at)
	}
	q.learn(at)
	if pause > lookLatest {
		q.forget(float64(pause) / 1e9)
	}
	q.limit.Store(int64(q.allowed()))
}

// measure finds out how much processor time there is.
func (q *runQueue) measure(at int64) {
	q.procs, q.looked = machine.Capacity(), at
}

// learn takes in what happened since the last look.
func (q *runQueue) learn(at int64) {
	is := runCounts{
		arrived: q.arrived.Load(), passed: q.passed.Load(), completed: q.completed.Load(), elsewhere: q.elsewhere.Load(),
	}
	if cpu, ok := machine.CPU(); ok {
		is.cpu = cpu
	} else {
		is.cpu = q.before.cpu
	}
	dt := float64(max(at-q.last, 1)) / 1e9
	elsewhere := float64(is.elsewhere - q.before.elsewhere)
	arrived := max(float64(is.arrived-q.before.arrived)-elsewhere, 1)
	passed := max(float64(is.passed-q.before.passed)-elsewhere, 0)
	denials := (max(arrived-passed, 0) + elsewhere) * rejectCost

	keep := math.Exp(-dt / costMemory)
	// What happened since the last look was spread over it, and is partly forgotten
	// too: what an idle hour used must not be the cost of the first requests after.
	fresh := (1 - keep) * costMemory / dt
	q.used = max(q.used*keep+fresh*((is.cpu-q.before.cpu).Seconds()-denials), 0)
	q.done = q.done*keep + fresh*float64(is.completed-q.before.completed)
	if q.done > 0 {
		q.cost = q.used / q.done
	}
	tau := min(max(100*q.cost, .1), 4) + fewArrived*dt/arrived
	a := 1 - math.Exp(-dt/tau)
	q.share += a * (min(max(passed/arrived, shareLeast), 1) - q.share)
	q.demand += a * (min(arrived*q.cost/dt/q.procs, demandMost) - q.demand)
	n, _ := machine.Runnable()
	q.queued += a * (float64(n)/q.procs - q.queued)
	q.peak = max(q.queued, q.peak*math.Exp(-dt/excuseMemory))
	q.narrow(dt, (is.cpu-q.before.cpu).Seconds()/dt/q.procs, passed < arrived)
	q.before, q.last = is, at
}

// forget is for so many seconds without a request, whose few neighbours would
// otherwise stand for all that time.
func (q *runQueue) forget(pause float64) {
	a := 1 - math.Exp(-pause/min(max(100*q.cost, .1), 4))
	q.demand -= a * q.demand
	q.share += a * (1 - q.share)
}

// allowed is how many goroutines may be runnable.
func (q *runQueue) allowed() float64 {
	further := max(q.procs-1, 0)
	wide := wideMost + moreMost*further
	if q.cost > 0 {
		wide = min(wide, max(waitShare*q.target*q.procs/q.cost, wideLeast+moreLeast*further))
	}
	closed := min(q.closed+moreNarrow*further, wide)
	return closed + (wide-closed)*q.openness()
}

// narrow moves the closed limit: up while requests are denied although the
// processor is not used fully, and down again when it is. The former happens where
// goroutines that are no requests stand in the queue too, such as those that read
// and write the connections of gRPC.
func (q *runQueue) narrow(dt, used float64, denies bool) {
	q.busyAt += (1 - math.Exp(-dt/.2)) * (used - q.busyAt)
	switch {
	case denies && q.busyAt < idleBelow:
		q.closed *= math.Exp(dt / narrowTime)
	case q.busyAt > fullAbove:
		q.closed *= math.Exp(-dt / narrowTime)
	}
	most := float64(narrowest)
	if q.cost > 0 {
		most = min(max(idleShare*q.target*q.busyAt/q.cost, narrowest), wideMost/2)
	}
	q.closed = min(max(q.closed, narrowest), most)
}

// openness is 1 while the load fits and 0 under overload.
func (q *runQueue) openness() float64 {
	open := min((demandClosed-q.demand)/(demandClosed-demandOpen), (q.share-shareClosed)/(shareOpen-shareClosed))
	return min(max(open, 0), 1)
}

func (q *runQueue) state() State {
	n, ok := machine.Runnable()
	q.mu.Lock()
	defer q.mu.Unlock()
	limit := q.limit.Load()
	s := State{
		Name: "runqueue", Limit: int(limit), Overloaded: q.openness() < 1,
		Signal: "runnable", Level: float64(n) / float64(limit), Known: ok,
	}
	if s.Overloaded {
		s.Cause = q.cause()
	}
	return s
}

// cause tells both means, which do not go beyond what one look can say.
func (q *runQueue) cause() string {
	demand, share := math.Round(100*q.demand), math.Round(100*q.share)
	var least, most string
	if demand >= 100*demandMost {
		least = "at least "
	}
	if share <= math.Round(100*shareLeast) {
		most = "at most "
	}
	return fmt.Sprintf("%s%.0f %% of the processor time asked for, %s%.0f %% admitted", least, demand, most, share)
}
