package backtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/decide"
)

// curves tracks the levels of all keys. A bucket has two columns of a row: the highest level in ticks, and
// the current one. A window has one: the most units that weighed at once in a limiter of the largest count.
type curves struct {
	all   []measure
	width int // columns of a row
}

type measure struct {
	spec        algo.Spec
	column      int               // of the highest level
	unit, least int64             // ticks of a unit of a bucket, or 1 in a window; the units of the smallest limit
	limiter     *algo.RateLimiter // of a window
}

// unbounded is the level of a key that no limit covers.
const unbounded = math.MaxInt64

// maxLevel is the level of the largest bucket.
var maxLevel = decide.Nanoseconds.Ticks(decide.MaxSpan)

func newCurves(specs []algo.Spec, width int) (curves, error) {
	c := curves{width: width}
	for _, s := range specs {
		if isWindow(&s) { // the largest count that all of them take
			s.Rate.Count = max(int64(s.Rate.Period)/4, 1)
			if s.Algorithm == "sliding-log" {
				s.Rate.Count = min(s.Rate.Count, 1<<16)
			}
		}
		s, err := s.With()
		switch {
		case err != nil:
			return c, err
		case size(&s) == nil || s.Given("wait") || s.Given("burst") || s.Given("queue"):
			return c, fmt.Errorf("backtest: curve of %v: want a token-bucket, leaky-bucket, nginx, pacer, fixed-window, sliding-window or sliding-log without a wait, burst and queue", s)
		}
		m := measure{spec: s, column: c.width, unit: 1, least: s.Slack + 1}
		c.width++
		if !isWindow(&s) {
			// With has checked the rate.
			m.unit = algo.Must(decide.NewGCRA(decide.Rate{Count: s.Rate.Count, Period: s.Rate.Period, Resolution: decide.Nanoseconds}, 1, 0)).Params().Emission
			c.width++
		}
		c.all = append(c.all, m)
	}
	return c, nil
}

// size returns the field of s that a curve determines, nil if it has no curve.
func size(s *algo.Spec) *int64 {
	switch s.Algorithm {
	case "token-bucket", "leaky-bucket", "nginx":
		return &s.Burst
	case "pacer":
		return &s.MaxQueue
	case "fixed-window", "sliding-window", "sliding-log":
		return &s.Rate.Count
	}
	return nil
}

func isWindow(s *algo.Spec) bool { return size(s) == &s.Rate.Count }

// sized returns s with room for n units at once.
func sized(s algo.Spec, n int64) (algo.Spec, error) {
	switch s.Algorithm {
	case "nginx":
		n-- // its burst is in excess of the unit that the rate admits
	case "pacer":
		if n -= 1 + s.Slack; n == 0 { // so many wait
			return algo.Parse(s.String() + " queue 0")
		}
	}
	*size(&s) = n
	return s.With()
}

func (c *curves) open(clock algo.Option) (err error) {
	for i := range c.all {
		if m := &c.all[i]; isWindow(&m.spec) && err == nil {
			// No key may lose its units to another.
			m.limiter, err = m.spec.New(clock, algo.MaxKeys(math.MaxInt32))
		}
	}
	return err
}

// add raises the levels of the key of row.
func (c *curves) add(row []int64, now time.Duration, e Event) error {
	drained := decide.Nanoseconds.Ticks(min(now-time.Duration(row[colLast]), mostStep))
	row[colLast] = int64(now)
	for i := range c.all {
		m := &c.all[i]
		if m.limiter == nil {
			level := row[m.column : m.column+2 : m.column+2]
			level[1] = max(level[1]-drained, 0) + min(e.Cost, maxLevel/m.unit+1)*m.unit
			if level[0] = max(level[0], level[1]); level[1] > maxLevel {
				level[0], level[1] = unbounded, maxLevel
			}
			continue
		}
		lease, err := m.limiter.Acquire(context.Background(), e.Key, e.Cost)
		if err != nil {
			return err
		}
		if row[m.column] = max(row[m.column], lease.Limit-lease.Remaining); !lease.Allowed {
			row[m.column] = unbounded
		}
	}
	return nil
}

// need returns the units that the key of a row needs at once.
func (m *measure) need(row []int64) int64 {
	if high := row[m.column]; high != unbounded {
		return max((high+m.unit-1)/m.unit, m.least)
	}
	return unbounded
}

// Curve holds the units that each key needs at once.
type Curve struct {
	Spec   algo.Spec
	steps  []Cover // ascending, of all keys that need so many units or fewer
	replay *Replay
	need   func(row []int64) int64
}

// Cover is a limit that denies nothing to the keys that it covers.
type Cover struct {
	Spec           algo.Spec
	Units          int64 // that fit at once
	Keys, Requests int64 // that are covered
}

func (r *Replay) curve(spec algo.Spec, need func([]int64) int64) Curve {
	found := map[int64]Cover{}
	for _, row := range r.rows {
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

// Cover returns the smallest limit that denies nothing to a share of the keys, 0 to 1; false if
// there is none, or no key.
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
	wanted := int64(math.Ceil(min(share, 1)*float64(covered(c.steps[len(c.steps)-1])) - 1e-6)) // .999 of 1000 is 999
	at = c.steps[slices.IndexFunc(c.steps, func(at Cover) bool { return covered(at) >= wanted })]
	if c.Spec.Algorithm != "" && at.Units != unbounded {
		var err error
		at.Spec, err = sized(c.Spec, at.Units)
		return at, err == nil
	}
	return at, at.Units != unbounded
}

// Above returns the keys that need more than units at once, the largest first.
func (c *Curve) Above(units int64) (keys []Key) {
	for name, row := range c.replay.rows {
		if need := c.need(row); need > units {
			keys = append(keys, Key{Name: name, Requests: row[colRequests], Units: need})
		}
	}
	worstFirst(keys, func(k Key) int64 { return k.Units })
	return keys
}
