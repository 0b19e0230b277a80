package adaptive

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	causes "github.com/sluice-go/sluice/internal/cause"
)

// cause is the reason of a denial within this package.
type cause uint8

const (
	none cause = iota
	byLimit
	byPriority // by the gate, for a higher class
	byShare    // by the gate, for a tenant within its share
	keptForClass
	keptForShare
	byRunQueue
	byFullQueue
	byLongWait
	byDeadline
	atPeek // no free slot, as seen by a peek, after which the caller denies a request
	never
	byKeys // of a limit per key: no room for one more
	countOfCauses
)

// wantsSlot reports whether a denied request passed all other checks and found no
// slot.
func (c cause) wantsSlot() bool {
	switch c {
	case byLimit, byFullQueue, byLongWait, keptForClass, keptForShare, atPeek:
		return true
	}
	return false
}

// public is the cause that decisions state.
func (c cause) public() algo.Cause {
	switch c {
	case byLimit, atPeek:
		return causes.Limit
	case byPriority, keptForClass:
		return causes.Priority
	case byShare, keptForShare:
		return causes.Share
	case byRunQueue:
		return causes.Processor
	case byFullQueue, byLongWait:
		return causes.Queue
	case byDeadline:
		return causes.Deadline
	case byKeys:
		return causes.Keys
	}
	return causes.None
}

// denialCounts counts denials by cause.
type denialCounts [countOfCauses]atomic.Uint64

func (d *denialCounts) add(c cause) { d[c].Add(1) }

// Explanation is a snapshot of a limiter: its limits, and the causes of denials.
type Explanation struct {
	Limit    int           // current limit of units in flight; 2147483647: no limit
	InFlight int           // units in flight
	AtClient int           // units of those that wait for their client: for a body, or to be read
	Waiting  int           // requests in the queue
	RTT      time.Duration // smoothed response time of successes; 0: unknown
	// Strategies has the state of each strategy. The strategies of a Min are
	// listed one by one.
	Strategies []State
	Denied     Denials
}

// State is the state of one strategy.
type State struct {
	Name  string // "bbr", "gradient2", ...; the Go type of other implementations
	Limit int    // current limit; 2147483647: no limit
	// Overloaded is true while the strategy lowers the limit because of overload,
	// and Cause names the signal or the symptom. Default also says there that denying
	// did not help, so that it does not limit for a while.
	Overloaded bool
	Cause      string
	// Signal is the name of the signal that the strategy follows, if any, and
	// Level its smoothed level, where 1 is the threshold. Known is false while the
	// signal cannot be read; the strategy then ignores it.
	Signal string
	Level  float64
	Known  bool
}

// Denials counts the denials of a limiter since its construction.
type Denials struct {
	Limit     uint64 // no free slot
	Priority  uint64 // denied so that requests of a higher class are admitted
	Share     uint64 // beyond the fair share of its tenant, so that others are admitted
	QueueFull uint64 // no free slot, and no room in the queue
	Wait      uint64 // no slot within the longest wait of the queue
	RunQueue  uint64 // too many goroutines waited for the processor
	Deadline  uint64 // the time left to the request was shorter than it would have taken
	Never     uint64 // cost above the largest possible limit
}

// Explain returns a snapshot for logs and operators. It allocates. The parts are
// read one after another, so they may differ by a moment.
func (l *Limiter) Explain() Explanation {
	e := Explanation{
		Limit: l.Limit(), InFlight: l.InFlight(), AtClient: int(l.waitsForClient(l.inFlight.Load())), RTT: time.Duration(l.mean.Load()),
		Denied: Denials{
			Limit: l.denials[byLimit].Load(), RunQueue: l.denials[byRunQueue].Load(),
			Priority:  l.denials[byPriority].Load() + l.denials[keptForClass].Load(),
			Share:     l.denials[byShare].Load() + l.denials[keptForShare].Load(),
			QueueFull: l.denials[byFullQueue].Load(), Wait: l.denials[byLongWait].Load(),
			Deadline: l.denials[byDeadline].Load(), Never: l.denials[never].Load(),
		},
	}
	for _, s := range leaves(l.strategy) {
		e.Strategies = append(e.Strategies, stateOf(s))
	}
	if l.queue != nil {
		e.Waiting = int(l.queue.length.Load())
	}
	return e
}

func stateOf(s Strategy) State {
	if s, ok := s.(interface{ state() State }); ok {
		return s.state()
	}
	return State{Name: fmt.Sprintf("%T", s), Limit: s.Limit()}
}

func (q *runQueue) state() State {
	n, ok := q.machine.Runnable()
	q.mu.Lock()
	defer q.mu.Unlock()
	limit := q.limit.Load()
	s := State{
		Name: "runqueue", Limit: int(limit), Overloaded: q.demand > demandOpen,
		Signal: "runnable", Level: float64(n) / float64(limit), Known: ok,
	}
	if s.Overloaded {
		s.Cause = fmt.Sprintf("%.0f %% of the processor time requested", 100*q.demand)
		if q.demand >= demandClosed {
			s.Cause = "at least " + s.Cause
		}
	}
	return s
}

// String is one line for a log: the limit, the units in flight, and the state of
// each strategy.
func (e Explanation) String() string {
	var b strings.Builder
	if e.Limit < noLimit {
		fmt.Fprintf(&b, "limit %d", e.Limit)
	} else {
		b.WriteString("no limit")
	}
	fmt.Fprintf(&b, ", %d in flight, %d waiting", e.InFlight, e.Waiting)
	if e.AtClient > 0 {
		fmt.Fprintf(&b, ", %d at their clients", e.AtClient)
	}
	for _, s := range e.Strategies {
		fmt.Fprintf(&b, "; %v", s)
	}
	return b.String()
}

// String is the state in a few words.
func (s State) String() string {
	var b strings.Builder
	if s.Limit < noLimit {
		fmt.Fprintf(&b, "%s %d", s.Name, s.Limit)
	} else {
		b.WriteString(s.Name + " none")
	}
	switch {
	case s.Overloaded:
		fmt.Fprintf(&b, " (overloaded: %s)", s.Cause)
	case s.Cause != "":
		fmt.Fprintf(&b, " (%s)", s.Cause)
	}
	switch {
	case s.Signal == "":
	case s.Known:
		fmt.Fprintf(&b, " %s %.2f", s.Signal, s.Level)
	default:
		fmt.Fprintf(&b, " %s unknown", s.Signal)
	}
	return b.String()
}

const causeSlow = "new work would take %.1f times as long as usual"

func (s *sojourn) state() State {
	busy := s.busy()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := State{Name: "sojourn", Limit: s.Limit(), Overloaded: s.hold.cause != "", Cause: s.hold.cause}
	switch {
	case !st.Overloaded && s.machine.Now() < s.until:
		st.Cause = fmt.Sprintf("denying did not help: no limit for %v", time.Duration(s.pause))
	case st.Cause == causeSlow:
		st.Cause = fmt.Sprintf(causeSlow, max(s.takes(s.now)/max(s.pace.usual, 1e-9), 1))
	}
	if st.Overloaded && !busy {
		st.Cause += ", nothing waits for the processor"
	}
	return st
}
