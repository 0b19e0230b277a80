package adaptive

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// cause is why a request was not admitted.
type cause uint8

const (
	none cause = iota
	byLimit
	byPriority
	byRunQueue
	byFullQueue
	byLongWait
	never
	causes
)

// tally counts denials by cause.
type tally [causes]atomic.Uint64

func (t *tally) add(c cause) { t[c].Add(1) }

// Explanation is what a limiter knows about itself: why it denies, if it does.
type Explanation struct {
	Limit    int           // most units in flight at the moment; 2147483647: no limit
	InFlight int           // units in flight at the moment
	Waiting  int           // requests in the queue at the moment
	RTT      time.Duration // smoothed time that a success takes; 0: none yet
	// Strategies has the state of each strategy, those of a Min one by one.
	Strategies []State
	Denied     Denials
}

// State is what one strategy goes by.
type State struct {
	Name  string // "bbr", "gradient2", ...; a type's name for strategies of others
	Limit int    // what it allows at the moment; 2147483647: no limit
	// Overloaded tells that the strategy holds the limit down at the moment,
	// and Cause why: the signal, or that nothing completes.
	Overloaded bool
	Cause      string
	// Signal is the name of the signal that the strategy follows, if any, and
	// Level its smoothed level, where 1 is the threshold. Known is false while
	// the signal cannot be read: then the strategy does without.
	Signal string
	Level  float64
	Known  bool
}

// Denials counts what a limiter has denied since it was made.
type Denials struct {
	Limit     uint64 // no place was free
	Priority  uint64 // shed, to keep places for requests of a higher class
	QueueFull uint64 // no place was free, nor one in the queue
	Wait      uint64 // waited in vain for as long as the queue lets anybody
	RunQueue  uint64 // too many goroutines were waiting for the processor
	Never     uint64 // cost more than the limit can ever be
}

// Explain returns a snapshot for logs and for people. It allocates; the parts
// are read one after another and may be a moment apart.
func (l *Limiter) Explain() Explanation {
	e := Explanation{
		Limit: l.Limit(), InFlight: l.InFlight(), RTT: time.Duration(l.mean.Load()),
		Strategies: states(l.strategy, nil),
		Denied: Denials{
			Limit: l.tally[byLimit].Load(), RunQueue: l.tally[byRunQueue].Load(), Priority: l.tally[byPriority].Load(),
			QueueFull: l.tally[byFullQueue].Load(), Wait: l.tally[byLongWait].Load(),
			Never: l.tally[never].Load(),
		},
	}
	if l.line != nil {
		e.Waiting = int(l.line.length.Load())
	}
	return e
}

// states appends the state of s, or of the strategies that s consists of.
func states(s Strategy, to []State) []State {
	switch s := s.(type) {
	case *minimum:
		for _, one := range s.all {
			to = states(one, to)
		}
		return to
	case interface{ state() State }:
		return append(to, s.state())
	}
	return append(to, State{Name: fmt.Sprintf("%T", s), Limit: s.Limit()})
}

// String is one line for a log: the limit, what is in flight, and what each
// strategy goes by.
func (e Explanation) String() string {
	var b strings.Builder
	if e.Limit < noLimit {
		fmt.Fprintf(&b, "limit %d", e.Limit)
	} else {
		b.WriteString("no limit")
	}
	fmt.Fprintf(&b, ", %d in flight, %d waiting", e.InFlight, e.Waiting)
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
	if s.Overloaded {
		fmt.Fprintf(&b, " (overloaded: %s)", s.Cause)
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
