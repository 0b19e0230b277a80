package backtest

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/sluice-go/sluice/algo"
)

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

// Curve is the units that each key needs at once.
type Curve struct {
	Spec   algo.Spec
	steps  []Cover // ascending, of all keys that need so many units or fewer
	replay *Replay
	need   func(row []int64) int64
}

// Cover is a limit that denies nothing to some keys.
type Cover struct {
	Spec           algo.Spec
	Units          int64 // that fit at once
	Keys, Requests int64 // that are covered
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

func (r *Replay) curve(spec algo.Spec, need func([]int64) int64) Curve {
	found := map[int64]Cover{}
	for id := range r.names {
		row := r.row(int32(id))
		units := need(row)
		at := found[units]
		found[units] = Cover{spec, units, at.Keys + 1, at.Requests + row[colRequests]}
	}
	steps := slices.SortedFunc(maps.Values(found), func(a, b Cover) int { return cmp.Compare(a.Units, b.Units) })
	for i := 1; i < len(steps); i++ {
		steps[i].Keys += steps[i-1].Keys
		steps[i].Requests += steps[i-1].Requests
	}
	return Curve{spec, steps, r, need}
}

// Cover returns the smallest limit that denies nothing to a share of the keys, 0 to 1. It
// reports false if no limit does, or there are no keys.
func (c *Curve) Cover(share float64) (Cover, bool) {
	return c.first(share, func(at Cover) int64 { return at.Keys })
}

// CoverRequests returns the smallest limit that denies nothing to keys with a share of the
// requests, 0 to 1, so that it admits at least this share.
func (c *Curve) CoverRequests(share float64) (Cover, bool) {
	return c.first(share, func(at Cover) int64 { return at.Requests })
}

func (c *Curve) first(share float64, covered func(Cover) int64) (at Cover, ok bool) {
	if len(c.steps) == 0 {
		return at, false
	}
	all := float64(covered(c.steps[len(c.steps)-1]))
	wanted := int64(math.Ceil(min(share, 1)*all - 1e-6)) // .999 of 1000 is 999
	at = c.steps[slices.IndexFunc(c.steps, func(at Cover) bool { return covered(at) >= wanted })]
	if c.Spec.Algorithm == "" || at.Units == unbounded {
		return at, at.Units != unbounded
	}
	var err error
	at.Spec, err = sized(c.Spec, at.Units)
	return at, err == nil
}

// Above returns the keys that need more than so many units at once, the largest first.
func (c *Curve) Above(units int64) (keys []Key) {
	for id, name := range c.replay.names {
		row := c.replay.row(int32(id))
		if need := c.need(row); need > units {
			keys = append(keys, Key{Name: name, Requests: row[colRequests], Units: need})
		}
	}
	worstFirst(keys, func(k Key) int64 { return k.Units })
	return keys
}
