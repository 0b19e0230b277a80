package backtest

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// Event is a recorded request.
type Event struct {
	At       time.Time // its arrival
	Key      string
	Cost     int64         // 0 or more
	Duration time.Duration // time in flight; 0: unknown
}

// Config configures a replay.
type Config struct {
	Limits []algo.Spec // decided as they are
	// Curves are limits whose size the traffic gives: the burst of token-bucket, leaky-bucket and nginx,
	// the queue of pacer, the count of fixed-window, sliding-window and sliding-log, of which only the
	// period of the rate matters. They have no wait. Other algorithms have no curve, because their burst
	// changes the weight of a unit.
	Curves   []algo.Spec
	InFlight []InFlight // tried on events with a duration
}

// InFlight is a limit on requests in flight. Each takes one slot, whatever its cost.
type InFlight struct {
	Limit int  // 1 to 2147483647
	Total bool // of all keys together; default: of each key
}

// Replay decides events one after another; [Run] is its short form. It is not safe for concurrent use.
type Replay struct {
	report    Report
	config    Config
	limits    []*limit
	curves    curves
	elapsed   time.Duration      // since the first event, as the limiters count
	rows      map[string][]int64 // by key
	free      []int64            // for the rows of further keys
	flying    endings
	decisions []algo.Decision
}

// Report is the result of a replay.
type Report struct {
	Requests, Units, Keys int64 // Units is at most math.MaxInt64
	Late, MostInFlight    int64 // events before the latest one; requests at once of all keys, 1 if no event has a duration
	First, Last           time.Time
	Limits                []Outcome // of Config.Limits, then of Config.InFlight, in their order
	Curves                []Curve   // of Config.Curves, in their order
	InFlight              Curve     // the most requests of each key at once; its Spec is empty
}

// Outcome is the effect that a limit would have had.
type Outcome struct {
	Spec            algo.Spec
	InFlight        InFlight // in place of Spec, of a limit on requests in flight
	Denied, Delayed int64    // requests
	Keys            []Key    // that were denied, the most denials first
	Minutes         []int64  // denials in each minute since the first event
	Overflowed      uint64   // see [algo.Stats]: if it is above 0, the limit needs a larger MaxKeys
}

// Key is a key that a limit denied, or that a curve does not cover.
type Key struct {
	Name             string
	Requests, Denied int64
	Units            int64 // that it needs at once; math.MaxInt64 if no limit is large enough
	// LockedOut is the longest time from its first denial to when its last one would have been
	// admitted, without an admission in between; to its last one if the limit is on requests in flight.
	LockedOut time.Duration
}

// The columns of a key's row. Those of the curves follow.
const (
	colRequests = iota
	colLast     // ns from the first event to its last charge
	colFlying   // requests in flight
	colPeak     // the most of them
	columns

	// A limit has three: its denials, the ns to its first denial since an admission plus 1, or 0, and the
	// longest lockout.
	limitColumns = 3
)

// endings is a heap of the requests in flight, the next one to end on top.
type endings []*ending

type ending struct {
	at     time.Time
	row    []int64
	leases []algo.Lease // of limits on requests in flight
}

func (f endings) Len() int           { return len(f) }
func (f endings) Less(i, j int) bool { return f[i].at.Before(f[j].at) }
func (f endings) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *endings) Push(x any)        { *f = append(*f, x.(*ending)) }
func (f *endings) Pop() (last any) {
	*f, last = (*f)[:len(*f)-1], (*f)[len(*f)-1]
	return last
}

const mostStep, mostSpan = 366 * 24 * time.Hour, 9 * 183 * 24 * time.Hour // of a limiter's clock, at once and altogether

// Run replays events in order of time.
func Run(events iter.Seq[Event], c Config) (*Report, error) {
	r, err := New(c)
	if err != nil {
		return nil, err
	}
	for e := range events {
		if _, err := r.Add(e); err != nil {
			return nil, err
		}
	}
	return r.Report(), nil
}

// New starts a replay. The error names a limit that is invalid or has no curve.
func New(c Config) (r *Replay, err error) {
	r = &Replay{config: c, rows: map[string][]int64{}, decisions: make([]algo.Decision, len(c.Limits)+len(c.InFlight))}
	for _, s := range c.Limits {
		if s, err = s.With(); err != nil {
			return nil, err
		}
		r.limits = append(r.limits, &limit{Outcome: Outcome{Spec: s}})
	}
	for _, f := range c.InFlight {
		slots, err := adaptive.PerKey(f.Limit, adaptive.WithMaxKeys(math.MaxInt32))
		if err != nil {
			return nil, err
		}
		r.limits = append(r.limits, &limit{Outcome: Outcome{InFlight: f}, limiter: slots})
	}
	r.curves, err = newCurves(c.Curves, columns+limitColumns*len(r.limits))
	return r, err
}

// Add replays one event and returns the decisions on Config.Limits and then on Config.InFlight, valid
// until the next call. An event before the latest one counts as late and is decided at the latest one's
// time, as limiters treat an old reading of the clock. The error is [algo.ErrCost] for a negative cost;
// events more than 4.5 years after the first one are errors, because a limiter does not count that far.
func (r *Replay) Add(e Event) ([]algo.Decision, error) {
	if err := r.advance(e); err != nil {
		return nil, err
	}
	r.report.Requests++
	r.report.Units += min(e.Cost, math.MaxInt64-r.report.Units)
	row, width := r.rows[e.Key], r.curves.width
	if row == nil {
		if len(r.free) == 0 {
			r.free = make([]int64, 1024*width)
		}
		row, r.free = r.free[:width:width], r.free[width:]
		r.rows[e.Key] = row
	}
	row[colRequests]++
	row[colFlying]++
	row[colPeak] = max(row[colPeak], row[colFlying])
	end := &ending{at: e.At.Add(e.Duration), row: row}
	for i, l := range r.limits {
		key, cost := e.Key, e.Cost
		if i >= len(r.config.Limits) {
			if cost = 1; l.InFlight.Total {
				key = ""
			}
		}
		lease, err := l.limiter.Acquire(context.Background(), key, cost)
		if err != nil {
			return nil, err
		}
		l.note(row[columns+limitColumns*i:], cost, &lease.Decision, r.elapsed)
		if r.decisions[i] = lease.Decision; i >= len(r.config.Limits) && lease.Allowed {
			end.leases = append(end.leases, lease)
		}
	}
	heap.Push(&r.flying, end)
	r.report.MostInFlight = max(r.report.MostInFlight, int64(len(r.flying)))
	return r.decisions, r.curves.add(row, r.elapsed, e)
}

// advance moves the clock to an event and ends the requests that are over by then. The limiters begin at
// the first event.
func (r *Replay) advance(e Event) (err error) {
	switch step := e.At.Sub(r.report.Last); {
	case e.Cost < 0:
		return fmt.Errorf("backtest: cost is %d: %w", e.Cost, algo.ErrCost)
	case r.report.Requests == 0:
		r.report.First, r.report.Last = e.At, e.At
		clock := algo.Clock(func() time.Time { return r.report.Last })
		for _, l := range r.limits[:len(r.config.Limits)] {
			if l.limiter, err = l.Spec.New(clock); err != nil {
				return err
			}
		}
		return r.curves.open(clock)
	case step < 0:
		r.report.Late++
	case r.elapsed+min(step, mostStep) > mostSpan:
		return fmt.Errorf("backtest: event at %v is more than 4.5 years after the first, further than a limiter counts", e.At)
	default:
		r.report.Last = e.At
		r.elapsed += min(step, mostStep)
	}
	for len(r.flying) > 0 && !r.flying[0].at.After(r.report.Last) {
		over := heap.Pop(&r.flying).(*ending)
		over.row[colFlying]--
		for i := range over.leases {
			over.leases[i].Release(algo.Succeeded)
		}
	}
	return nil
}

// limit replays one limit by its limiter.
type limit struct {
	Outcome
	limiter algo.Limiter
}

// note counts a decision in the limit's columns of the key's row.
func (l *limit) note(row []int64, cost int64, d *algo.Decision, now time.Duration) {
	if d.Allowed {
		if d.Delay > 0 {
			l.Delayed++
		}
		if cost > 0 {
			row[1] = 0
		}
		return
	}
	row[0]++
	if row[1] == 0 {
		row[1] = int64(now) + 1
	}
	out := int64(now) + 1 - row[1]
	if d.Reason != algo.Never && l.InFlight.Limit == 0 {
		out += int64(d.RetryAfter)
	}
	row[2] = max(row[2], out)
	l.Denied++
	at := int(now / time.Minute)
	l.Minutes = append(l.Minutes, make([]int64, max(at+1-len(l.Minutes), 0))...)
	l.Minutes[at]++
}

// Report returns the result of the events so far. The replay must not go on.
func (r *Replay) Report() *Report {
	out := r.report
	out.Keys = int64(len(r.rows))
	for i, l := range r.limits {
		o := l.Outcome
		for name, row := range r.rows {
			if own := row[columns+limitColumns*i:]; own[0] > 0 {
				o.Keys = append(o.Keys, Key{Name: name, Requests: row[colRequests], Denied: own[0], LockedOut: time.Duration(own[2])})
			}
		}
		if counted, ok := l.limiter.(*algo.RateLimiter); ok {
			o.Overflowed = counted.Stats().Overflowed
		}
		worstFirst(o.Keys, func(k Key) int64 { return k.Denied })
		out.Limits = append(out.Limits, o)
	}
	for _, m := range r.curves.all {
		out.Curves = append(out.Curves, r.curve(m.spec, m.need))
	}
	out.InFlight = r.curve(algo.Spec{}, func(row []int64) int64 { return row[colPeak] })
	return &out
}

func worstFirst(keys []Key, by func(Key) int64) {
	slices.SortFunc(keys, func(a, b Key) int { return cmp.Or(cmp.Compare(by(b), by(a)), cmp.Compare(a.Name, b.Name)) })
}
