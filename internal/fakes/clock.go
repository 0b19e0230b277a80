package fakes

import (
	"sync"
	"time"
)

// Clock is a clock that a test advances by hand, for [algo.Clock].
type Clock struct {
	mu sync.Mutex
	t  time.Time
}

// ClockAt makes a clock that stands at t.
func ClockAt(t time.Time) *Clock { return &Clock{t: t} }

// Now reads the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

// Advance moves the clock by d, back if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}
