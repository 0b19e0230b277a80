package adaptive

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/machine"
)

// RunQueue is a strategy for services whose bottleneck is the processor. It denies
// a request if, at the moment its goroutine first runs, more goroutines are ready
// to run than a limit allows.
//
// A limit on requests in flight does not protect such a service in Go. A handler
// that uses less than the scheduler's time slice of 10 ms runs to its end once it
// has begun, so about one request per processor is in flight whatever the load. The
// others wait as runnable goroutines in front of the handler, where no such limit
// sees them, until their callers have given up.
//
// Nothing is denied while all goroutines of the process together, each taken for
// a request, would be done within seven tenths of the target: a burst or a closed
// loop of clients that drains in time is no overload. Idle keep-alive connections
// are goroutines too; with very many of them only the limit decides.
//
// The limit has two ends:
//   - It is wide while the load fits, so that bursts pass: as many goroutines as
//     take seven tenths of the target ([WithTarget]), 20 to 96.
//   - It closes to 6 as the demand grows from 100 % to 115 % of the processor time,
//     or as the share of admitted requests falls from 0.8 to 0.6. The latter matters
//     on processors that other processes use too.
//
// Demand and share are exponential means over the time of 100 requests, 0.1 to 4 s,
// so a single burst moves them little. The demand is the rate of arrivals times the
// processor time per completion, as a share of GOMAXPROCS or, where that is less,
// of the quota of the control group, read every 10 s: a container with a limit of
// 500m has half a processor, though Go runs on two. While the strategy denies
// requests and leaves the processors idle it closes less far, at most to a quarter
// of the target.
//
// It does not limit requests in flight: Limit is 2147483647. [Default] adds a limit
// for requests that wait for another service. A cost above 1 counts as 1. Where
// runtime/metrics does not know the number of runnable goroutines, or its number is
// implausible or does not change, which the first reading finds out and logs once,
// the number of goroutines above the fewest of the last minute takes its place. Where
// the processor time of the process is unknown (neither Unix nor Windows) only the
// admitted share closes the limit.
//
// A request reads the number of goroutines, about 2 ns. Only when that is large it
// reads the number of runnable ones, which takes about 60 ns and a lock of the Go
// runtime; while one request reads, the others take the last reading.
//
// Option: [WithTarget].
func RunQueue(opts ...Option) Strategy {
	q, err := newRunQueue("RunQueue", opts)
	if err != nil {
		return invalid{err}
	}
	return q
}

// WithTarget sets the response time beyond which an answer is useless, 1 ms to 1 h.
// The default is 500 ms.
func WithTarget(d time.Duration) Option {
	return Option{"WithTarget", func(s *settings) { s.target = d }}
}

const (
	defaultTarget = 500 * time.Millisecond

	// Runnable goroutines. Independent arrivals at .85 of the capacity leave more
	// than 20 of them in 1 of 30 moments (processor sharing), so that .5 % are
	// denied. Go's poller hands out 128 connections at a time, and only when
	// nothing is runnable; under overload the limit must be well below the admitted
	// share of those, or requests grow old in the kernel. Several processors need
	// no more than one.
	minWide, maxWide, minClosed = 20, 96, 6
	waitShare, idleShare        = 0.7, 0.25 // of the target, to spend in the queue
	denialCost                  = 15e-6     // processor time of a denial, s
	minSlack                    = 2         // requests
	queueUpdateEvery            = int64(10 * time.Millisecond)
	queueUpdateLatest           = int64(time.Second) // with any number of arrivals
	minArrivals                 = 10
	costMemory                  = 10.0       // of the cost of a request, s
	idleBelow, fullAbove        = 0.96, 0.98 // use of the processors at which the closed limit rises and falls
	closedTime                  = 0.5        // in which it moves by a factor of e, s
	demandOpen, demandClosed    = 1.0, 1.15  // where the limit begins to close, and is closed
	shareOpen, shareClosed      = 0.8, 0.6
	maxDemand, minShare         = 1.5, 0.55 // the most that one update counts, so that recovery from 10x is as fast as from 2x
	minMemory, maxMemory        = 0.1, 4.0  // of demand and share, s
	memoryRequests              = 100
	quietRate                   = 100.0  // completions a second and processor below which a request costs no more than it takes
	outsideHandler              = 100e-6 // processor time of a request outside its handler, s
)

type runQueue struct {
	owned
	machine machine.Machine
	target  float64 // s

	limit    atomic.Int64 // of runnable goroutines
	harmless atomic.Int64 // goroutines that would be done within the target as requests
	next     atomic.Int64 // instant of the next update
	_        [40]byte     // every request writes what follows

	arrived, passed, completed atomic.Uint64
	elsewhere                  atomic.Uint64 // passed here and denied by another strategy
	rtt                        atomic.Int64  // mean of successes, ns; 0: unknown
	lastRead                   atomic.Int64  // runnable goroutines
	reading                    atomic.Bool
	_                          [12]byte

	mu       sync.Mutex // guards what follows
	procs    float64    // processors, within the quota
	measured int64      // instant of the measurement of procs
	updated  int64
	before   queueCounts
	used     float64 // decaying sum of processor time, s
	done     float64 // decaying sum of completions
	cost     float64 // processor time per completion, s; 0: unknown
	share    float64 // of the arrivals that passed
	demand   float64 // processor time of all arrivals, as a share of procs
	queue    float64 // mean runnable goroutines per processor
	usage    float64 // mean use of the processors
	closed   float64 // closed limit, on one processor
}

func newRunQueue(constructor string, opts []Option) (*runQueue, error) {
	s := settings{target: defaultTarget}
	if err := configure(constructor, &s, opts, "WithTarget"); err != nil {
		return nil, err
	}
	if s.target < time.Millisecond || s.target > time.Hour {
		return nil, fmt.Errorf("%s: target is %v, want 1ms to 1h", constructor, s.target)
	}
	q := &runQueue{
		machine: s.machine, target: s.target.Seconds(), share: 1, closed: minClosed, updated: s.machine.Now(),
	}
	q.before.cpu, _ = q.machine.CPU()
	q.measure(q.updated)
	q.limit.Store(int64(q.allowed()))
	q.harmless.Store(q.drainable())
	return q, nil
}

func (q *runQueue) Limit() int { return noLimit }

// Observe keeps the mean response time. Concurrent samples may lose one another.
func (q *runQueue) Observe(s Sample) {
	if mean := q.rtt.Load(); mean == 0 {
		q.rtt.Store(int64(s.RTT))
	} else if change := (int64(s.RTT) - mean) / memoryRequests; change != 0 {
		q.rtt.Store(max(mean+change, 1))
	}
}

func (q *runQueue) admits(at int64) bool {
	q.arrived.Add(1)
	if at >= q.next.Load() {
		q.update(at)
	}
	if q.exceeded() {
		return false
	}
	q.passed.Add(1)
	return true
}

// exceeded reports whether a request is denied. The number of runnable goroutines
// is behind a lock of the runtime, so it is read only while the queue may be long.
func (q *runQueue) exceeded() bool {
	if q.drains() {
		return false
	}
	return q.runnable() > q.limit.Load()
}

// runnable is the number of runnable goroutines, 0 if it is unknown. Requests never
// wait for one another's readings.
func (q *runQueue) runnable() int64 {
	if !q.reading.CompareAndSwap(false, true) {
		return q.lastRead.Load()
	}
	defer q.reading.Store(false)
	n, ok := q.machine.Runnable()
	if !ok {
		n = 0
	}
	q.lastRead.Store(int64(n))
	return int64(n)
}

// drains reports whether all goroutines of the process together would be done
// within the target, if each were a request. Then no request can wait for longer.
func (q *runQueue) drains() bool {
	n, ok := q.machine.Goroutines()
	return ok && int64(n) <= q.harmless.Load()
}

func (q *runQueue) full() bool {
	full := q.exceeded()
	if full {
		q.arrived.Add(1)
		// If every request is denied here, nothing else updates the limit.
		if at := q.machine.Now(); at >= q.next.Load() {
			q.update(at)
		}
	}
	return full
}

// slack is half of what is done within the share of the target that may be spent in the
// queue.
func (q *runQueue) slack() (requests, service int64) {
	service = int64(waitShare * q.target * float64(q.machine.Procs()) * 1e9 / 2)
	return max(q.harmless.Load()/2, minSlack), service
}

func (q *runQueue) empty() bool { return q.lastRead.Load() == 0 }

func (q *runQueue) admitted(_, _, _ int64) {}
func (q *runQueue) finished(_, _ int64)    { q.completed.Add(1) }

// denied counts requests that passed here and found no slot: they will not use the
// processor.
func (q *runQueue) denied(by cause, _ int64) {
	if by.wantsSlot() {
		q.elsewhere.Add(1)
	}
}

// queued reports whether work waited recently for the processor, which explains
// long response times.
func (q *runQueue) queued() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queue > .5
}

// update learns from the time since the last update and sets the limit. A request
// does it when it is time: a goroutine for this purpose would wait in the queue
// itself.
func (q *runQueue) update(at int64) {
	if !q.mu.TryLock() {
		return
	}
	defer q.mu.Unlock()
	pause := at - q.next.Swap(at+queueUpdateEvery) // without an arrival
	if q.arrived.Load()-q.before.arrived < minArrivals && at-q.updated < queueUpdateLatest {
		return
	}
	if at-q.measured >= int64(quotaEvery) {
		q.measure(at)
	}
	q.learn(at)
	if pause > queueUpdateLatest {
		q.relax(float64(pause) / 1e9)
	}
	q.limit.Store(int64(q.allowed()))
	q.harmless.Store(q.drainable())
}

func (q *runQueue) state() State {
	n, ok := q.machine.Runnable()
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

// cause states both means, which end at the bounds of one update.
func (q *runQueue) cause() string {
	demand, share := math.Round(100*q.demand), math.Round(100*q.share)
	var least, most string
	if demand >= 100*maxDemand {
		least = "at least "
	}
	if share <= math.Round(100*minShare) {
		most = "at most "
	}
	return fmt.Sprintf("%s%.0f %% of the processor time requested, %s%.0f %% admitted", least, demand, most, share)
}
