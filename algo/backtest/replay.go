package backtest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// Event is a recorded request.
type Event struct {
	At       time.Time // its arrival
	Key      string
	Cost     int64         // 0 or more
	Duration time.Duration // for which it was in flight; 0: unknown
}

// Config says what a replay computes.
type Config struct {
	Limits []algo.Spec // decided as they are
	// Curves are limits whose size the traffic gives: the burst of token-bucket, leaky-bucket and nginx,
	// the queue of pacer, the count of fixed-window, sliding-window and sliding-log, of which only the
	// period of the rate matters. They have no wait. The burst of other algorithms changes what a unit
	// weighs, so that they have no curve.
	Curves   []algo.Spec
	Interval time.Duration // of [Outcome.Intervals]; default: a minute
}

// Replay decides events one after another; [Run] is its short form. It is not safe for concurrent use.
type Replay struct {
	report    Report
	config    Config
	limits    []*limit
	curves    curves
	elapsed   time.Duration // since the first event, as the limiters count
	ids       map[string]int32
	names     []string
	rows      [][]int64 // numbers of blockKeys keys each, which are never copied
	flying    []ending  // requests in flight, the last to end first
	decisions []algo.Decision
}

// Report is the result of a replay.
type Report struct {
	Requests, Units, Keys int64
	Late                  int64 // events before the latest one
	First, Last           time.Time
	Limits                []Outcome // of Config.Limits, in their order
	Curves                []Curve   // of Config.Curves, in their order
	MostInFlight          int64     // requests at once, of all keys; 1 if no event has a duration
	InFlight              Curve     // the most requests of each key at once; its Spec is empty
}

// Outcome is what a limit would have done.
type Outcome struct {
	Spec            algo.Spec
	Denied, Delayed int64   // requests
	Keys            []Key   // that were denied, the most denials first
	Intervals       []int64 // denials in each interval since the first event
	Overflowed      uint64  // see [algo.Stats]: if it is above 0, the limit needs a larger MaxKeys
}

// Key is a key that a limit denied, or that a curve does not cover.
type Key struct {
	Name             string
	Requests, Denied int64
	Units            int64 // that it needs at once; math.MaxInt64 if no limit is large enough
	// LockedOut is the longest time from its first denial to when its last one would have been
	// admitted, without an admission in between.
	LockedOut time.Duration
}

// The columns of a key's row. Those of the curves follow.
const (
	colRequests = iota
	colLast     // ns from the first event to its last charge
	colFlying   // requests in flight
	colPeak     // the most of them
	columns

	blockKeys = 1 << 10
)

type ending struct {
	at time.Time
	id int32
}

// mostStep is the longest step of a limiter's clock.
const mostStep = 366 * 24 * time.Hour

// Run replays events, which are in order of time.
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

// New starts a replay. The error names a limit that cannot be made, or has no curve.
func New(c Config) (r *Replay, err error) {
	c.Interval = cmp.Or(max(c.Interval, 0), time.Minute)
	r = &Replay{config: c, ids: map[string]int32{}, decisions: make([]algo.Decision, len(c.Limits))}
	for _, s := range c.Limits {
		if s, err = s.With(); err != nil {
			return nil, err
		}
		r.limits = append(r.limits, &limit{Outcome: Outcome{Spec: s}, victims: map[int32]*victim{}})
	}
	r.curves, err = newCurves(c.Curves)
	return r, err
}

// Add replays one event and returns the decisions on Config.Limits, valid until the next call. An
// event before the latest one is decided at the latest one's time, as limiters do with an old reading
// of the clock, and counted as late. The error is [algo.ErrCost] for a negative cost.
func (r *Replay) Add(e Event) ([]algo.Decision, error) {
	if e.Cost < 0 {
		return nil, fmt.Errorf("backtest: cost is %d: %w", e.Cost, algo.ErrCost)
	}
	if err := r.advance(e.At); err != nil {
		return nil, err
	}
	e.At = r.report.Last
	r.report.Requests++
	r.report.Units += e.Cost
	id, known := r.ids[e.Key]
	if !known {
		id = int32(len(r.names))
		r.ids[e.Key] = id
		r.names = append(r.names, e.Key)
	}
	row := r.row(id)
	row[colRequests]++
	r.fly(e, id)
	for i, l := range r.limits {
		lease, err := l.limiter.Acquire(context.Background(), e.Key, e.Cost)
		if err != nil {
			return nil, err
		}
		l.note(e, id, &lease.Decision, int(r.elapsed/r.config.Interval))
		r.decisions[i] = lease.Decision
	}
	return r.decisions, r.curves.add(row, r.elapsed, e)
}

// row returns the numbers of a key.
func (r *Replay) row(id int32) []int64 {
	block, i := int(id/blockKeys), int(id%blockKeys)*r.curves.width
	if block == len(r.rows) {
		r.rows = append(r.rows, make([]int64, blockKeys*r.curves.width))
	}
	return r.rows[block][i : i+r.curves.width]
}

// advance moves the clock to at. The limiters begin at the first event.
func (r *Replay) advance(at time.Time) (err error) {
	switch step := at.Sub(r.report.Last); {
	case r.report.Requests == 0:
		r.report.First, r.report.Last = at, at
		clock := algo.Clock(func() time.Time { return r.report.Last })
		for _, l := range r.limits {
			if l.limiter, err = l.Spec.New(clock); err != nil {
				return err
			}
		}
		return r.curves.open(clock)
	case step < 0:
		r.report.Late++
	default:
		r.report.Last = at
		r.elapsed += min(step, mostStep)
	}
	return nil
}

// fly ends the requests that are over when e begins, and begins it.
func (r *Replay) fly(e Event, id int32) {
	n := len(r.flying)
	for ; n > 0 && !r.flying[n-1].at.After(e.At); n-- {
		r.row(r.flying[n-1].id)[colFlying]--
	}
	r.flying = r.flying[:n]
	row := r.row(id)
	row[colPeak] = max(row[colPeak], row[colFlying]+1)
	r.report.MostInFlight = max(r.report.MostInFlight, int64(n)+1)
	if e.Duration > 0 {
		row[colFlying]++
		end := ending{e.At.Add(e.Duration), id}
		at, _ := slices.BinarySearchFunc(r.flying, end, func(a, b ending) int { return b.at.Compare(a.at) })
		r.flying = slices.Insert(r.flying, at, end)
	}
}

// limit is a limit that its limiter decides.
type limit struct {
	Outcome
	limiter *algo.RateLimiter
	victims map[int32]*victim
}

type victim struct {
	Key
	since time.Time // the first denial after an admission, or zero
}

func (l *limit) note(e Event, id int32, d *algo.Decision, interval int) {
	v := l.victims[id]
	if d.Allowed {
		if d.Delay > 0 {
			l.Delayed++
		}
		if v != nil && e.Cost > 0 {
			v.since = time.Time{}
		}
		return
	}
	if v == nil {
		v = &victim{}
		l.victims[id] = v
	}
	if v.since.IsZero() {
		v.since = e.At
	}
	out := e.At.Sub(v.since)
	if d.Reason != algo.Never {
		out += d.RetryAfter
	}
	v.LockedOut = max(v.LockedOut, out)
	v.Denied++
	l.Denied++
	l.Intervals = append(l.Intervals, make([]int64, max(interval+1-len(l.Intervals), 0))...)
	l.Intervals[interval]++
}

// Report returns the result of the events so far. The replay must not go on.
func (r *Replay) Report() *Report {
	out := r.report
	out.Keys = int64(len(r.names))
	for _, l := range r.limits {
		o := l.Outcome
		for id, v := range l.victims {
			v.Name, v.Requests = r.names[id], r.row(id)[colRequests]
			o.Keys = append(o.Keys, v.Key)
		}
		if l.limiter != nil {
			o.Overflowed = l.limiter.Stats().Overflowed
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
