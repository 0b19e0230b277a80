package fakes

import (
	"sync"
	"time"
	"unsafe"
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

// Step moves the wall clock alone, by whole seconds, as when it is set, or when the machine was
// suspended. The clock must stand at a time of [time.Now], which has a monotonic reading too: no
// function of package time makes the two differ, so it writes to the field.
func (c *Clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*(*uint64)(unsafe.Pointer(&c.t)) += uint64(d/time.Second) << 30
}
