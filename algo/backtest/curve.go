package backtest

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/decide"
)

// curves are the levels of all keys. A bucket has two columns of a row: the highest level in ticks, and
// the present one. A window has one: the most units that weighed at once in a limiter of the largest count.
type curves struct {
	all   []measure
	width int // columns of a row
}

type measure struct {
	spec    algo.Spec
	column  int               // of the highest level
	unit    int64             // ticks of a unit of a bucket, 1 in a window
	least   int64             // units that the smallest limit has room for
	limiter *algo.RateLimiter // of a window
}

// unbounded is the level of a key that no limit covers.
const unbounded = math.MaxInt64

// maxLevel is the level of the largest bucket.
var maxLevel = decide.Nanoseconds.Ticks(decide.MaxSpan)

func newCurves(specs []algo.Spec) (curves, error) {
	c := curves{width: columns}
	for _, s := range specs {
		if isWindow(&s) { // the largest count that all of them take
			s.Rate.Count = max(int64(s.Rate.Period)/4, 1)
			if s.Algorithm == "sliding-log" {
				s.Rate.Count = min(s.Rate.Count, 1<<16)
			}
			s.MaxKeys = math.MaxInt32 // none may lose its units to another one
		}
		for _, option := range []string{"wait", "burst", "queue"} {
			if s.Given(option) {
				return c, fmt.Errorf("backtest: curve of %v: it must not have %s", s, option)
			}
		}
		s, err := s.With()
		if err != nil {
			return c, err
		}
		if size(&s) == nil {
			return c, fmt.Errorf("backtest: curve of %v: there is none, because the burst changes what a unit weighs", s)
		}
		m := measure{spec: s, column: c.width, unit: 1, least: s.Slack + 1}
		c.width++
		if !isWindow(&s) {
			g, err := decide.NewGCRA(decide.Rate{Count: s.Rate.Count, Period: s.Rate.Period, Resolution: decide.Nanoseconds}, 1, 0)
			if err != nil {
				return c, err
			}
			m.unit = g.Params().Emission
			c.width++
		}
		c.all = append(c.all, m)
	}
	return c, nil
}

// size is the field of s that a curve gives, nil if it has no curve.
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
	if isWindow(&s) {
		s.MaxKeys = 0
	}
	return s.With()
}

func (c *curves) open(clock algo.Option) (err error) {
	for i := range c.all {
		if m := &c.all[i]; isWindow(&m.spec) {
			if m.limiter, err = m.spec.New(clock); err != nil {
				return err
			}
		}
	}
	return nil
}

// add raises the levels of the key of row.
func (c *curves) add(row []int64, now time.Duration, e Event) error {
	if e.Cost == 0 {
		return nil
	}
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

// need is the units that the key of a row needs at once.
func (m *measure) need(row []int64) int64 {
	if high := row[m.column]; high != unbounded {
		return max((high+m.unit-1)/m.unit, m.least)
	}
	return unbounded
}
