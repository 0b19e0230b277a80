package adaptive

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
)

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
	// Overloaded is true while the strategy lowers the limit because of overload, and Cause names the
	// signal or the symptom; for [WithHook], why a limit ended.
	Overloaded bool
	Cause      string
	// Signal is the name of the signal that the strategy follows, if any, and
	// Level its smoothed level, where 1 is the threshold. Known is false while the
	// signal cannot be read; the strategy then ignores it.
	Signal string
	Level  float64
	Known  bool
	// Estimate is what the strategy knows of the service, nil if it keeps no such windows.
	Estimate *Estimate
}

// Estimate is what BBR and CompatKratos of package strategy know of a service: their limit in an
// overload is about MaxPass per bucket times MinRT.
type Estimate struct {
	MaxPass  int64         // largest number of completions in a bucket of the window
	MinRT    time.Duration // response time without overload; 0: no estimate yet
	Samples  int64         // completions in the window
	LastDrop time.Duration // since the last denial in an overload; 0: none
}

// String summarizes the estimate in a few words.
func (e Estimate) String() string {
	s := "no estimate yet"
	if e.MinRT > 0 && e.MaxPass > 0 {
		s = fmt.Sprintf("maxPass %d, minRT %v, %d samples", e.MaxPass, e.MinRT, e.Samples)
	}
	if e.LastDrop > 0 {
		s += fmt.Sprintf(", last drop %v ago", e.LastDrop.Round(time.Millisecond))
	}
	return s
}

// Denials counts the denials of a limiter since its construction, by the Cause that each
// decision states.
type Denials struct {
	Limit     uint64 // no free slot, and no overload: a constant or an upper limit
	Deadline  uint64 // the time left to the request was shorter than it would have taken
	Queue     uint64 // no room in the queue, or no slot within its longest wait
	Processor uint64 // too many goroutines waited for the processor
	Latency   uint64 // no free slot: the limit is low because work takes far longer than usual
	Hang      uint64 // no free slot: the limit is low because nothing completes
	Priority  uint64 // denied so that requests of a higher class are admitted
	Share     uint64 // beyond the fair share of its tenant, so that others are admitted
	Never     uint64 // cost above the largest possible limit
}

// String returns one line, such as "17 latency, 3 deadline"; "none" without denials.
func (d Denials) String() string {
	var parts []string
	for _, c := range []struct {
		n    uint64
		name string
	}{
		{d.Limit, "limit"}, {d.Deadline, "deadline"}, {d.Queue, "queue"}, {d.Processor, "processor"}, {d.Latency, "latency"},
		{d.Hang, "hang"}, {d.Priority, "priority"}, {d.Share, "share"}, {d.Never, "never"},
	} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.name))
		}
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// Explain returns a snapshot for logs and operators. It allocates. The parts are
// read one after another, so they may differ by a moment.
func (l *Limiter) Explain() Explanation {
	e := Explanation{
		Limit: l.Limit(), InFlight: l.InFlight(), AtClient: int(l.waitsForClient(l.inFlight.Load())), RTT: time.Duration(l.mean.Load()),
	}
	of := func(c algo.Cause) uint64 { return l.denials[c].Load() }
	e.Denied = Denials{
		of(cause.Limit), of(cause.Deadline), of(cause.Queue), of(cause.Processor), of(cause.Latency),
		of(cause.Hang), of(cause.Priority), of(cause.Share), of(never),
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
	if s, ok := s.(interface{ State() State }); ok {
		return s.State()
	}
	return State{Name: fmt.Sprintf("%T", s), Limit: s.Limit()}
}

func (q *runQueue) State() State {
	n, ok := q.machine.Runnable()
	q.mu.Lock()
	defer q.mu.Unlock()
	limit := q.limit.Load()
	s := State{
		Name: "runqueue", Limit: int(limit), Overloaded: q.reason != cause.None,
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

// String returns one line for a log: the limit, the units in flight, the denials by cause and each
// strategy's state.
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
	if e.Denied != (Denials{}) {
		fmt.Fprintf(&b, "; denied: %v", e.Denied)
	}
	for _, s := range e.Strategies {
		fmt.Fprintf(&b, "; %v", s)
	}
	return b.String()
}

// String summarizes the state in a few words.
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
	if s.Estimate != nil {
		fmt.Fprintf(&b, ", %v", *s.Estimate)
	}
	return b.String()
}

// State implements the optional method of [Strategy].
func (s *sojourn) State() State {
	busy := s.busy()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := State{Name: "sojourn", Limit: s.Limit(), Overloaded: s.hold.cause != cause.None}
	switch s.hold.cause {
	case cause.Latency:
		st.Cause = fmt.Sprintf("new work would take %.3g s, %.1f times the target", s.takes(s.now), s.takes(s.now)/s.target)
		if part, err := s.pace.fit.part(); err < naturePart {
			st.Cause += fmt.Sprintf(", %.0f %% of it by the work in flight", 100*min(max(part, 0), 1))
		}
	case cause.Hang:
		st.Cause = "nothing completes"
	}
	if st.Overloaded && !busy {
		st.Cause += ", nothing waits for the processor"
	}
	return st
}

// Tenants returns the n tenants that asked for the most service in the current overload, or in one
// that ended less than a minute ago, largest first. Older demand counts less: half after seven
// seconds. The list is empty without [WithFairShares] and without overload. It allocates.
//
// The figures are estimates (Space-Saving: Metwally, Agrawal, El Abbadi, ICDT 2005). A tenant that
// asks for more than a 16th of everything is found, one that asks for less than a 1000th is not.
// Among more than 32 tenants Asked and Served are too small by at most a 32nd. Two kinds of
// requests are not counted: those denied because of their deadline, and those decided at the same
// instant as another one.
//
// The keys of up to 32 tenants stay in memory after the overload.
func (l *Limiter) Tenants(n int) []TenantUse {
	if l.order == nil || l.order.shares == nil {
		return nil
	}
	all := l.order.shares.heaviest.list(l.machine.Now())
	return all[:min(max(n, 0), len(all))]
}
