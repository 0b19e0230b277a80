package algo

import (
	"fmt"
	"time"
)

// windowSettings is what the options of windows write to.
type windowSettings struct {
	offset  time.Duration
	aligned time.Time
	spread  bool

	cells    int
	cellsSet bool // false: two weighted counters
}

// Offset moves the edges of a [FixedWindow] by d, 0 or more and taken modulo
// the period. Without [AlignedTo] the edges are at d, d + period, ... after
// the limiter was made; several limiters, or instances of a service, that get
// different offsets do not refill at the same instant.
func Offset(d time.Duration) Option {
	return Option{"Offset", func(s *settings) { s.window.offset = d }}
}

// AlignedTo puts an edge of a [FixedWindow] at t, past or future, and the
// others whole periods away from it: with the last midnight of a location and
// a period of 24 hours the windows are that location's days. t must be within
// 291 years.
//
// Windows are lengths of time, not dates. When daylight saving begins or ends
// the location's midnight moves by an hour and the windows do not; neither do
// they follow when the system's clock is set. Where that matters make a new
// limiter at the change.
func AlignedTo(t time.Time) Option {
	return Option{"AlignedTo", func(s *settings) { s.window.aligned = t }}
}

// Spread gives each key of a [FixedWindow] edges of its own, at one of 1024
// places in the period that a secret hash picks. Then the keys do not all
// refill at once, and callers that wait for the edge do not all come back at
// once. It cannot be combined with [AlignedTo]. The empty key stays where it
// is.
func Spread() Option {
	return Option{"Spread", func(s *settings) { s.window.spread = true }}
}

// Cells makes a [SlidingWindow] count in n cells a period, 1 to 1024, and one
// more: then no window whatever holds more than the quota. More cells give
// units back sooner, one n-th of the period late at most, and take 8 bytes a
// key each.
func Cells(n int) Option {
	return Option{"Cells", func(s *settings) { s.window.cells, s.window.cellsSet = n, true }}
}

const mostCells = 1024

// check validates what does not depend on the rate.
func (w windowSettings) check() error {
	switch {
	case w.offset < 0:
		return fmt.Errorf("offset is %v, want 0 or more", w.offset)
	case w.cellsSet && (w.cells < 1 || w.cells > mostCells):
		return fmt.Errorf("cells is %d, want 1 to %d", w.cells, mostCells)
	case w.spread && !w.aligned.IsZero():
		return fmt.Errorf("aligned to is %v: it cannot be combined with Spread", w.aligned)
	}
	return nil
}

// reference is an edge of the windows of a limiter made at made, as time
// since then, but for the offset.
func (w windowSettings) reference(made time.Time) (time.Duration, error) {
	if w.aligned.IsZero() {
		return 0, nil
	}
	d := w.aligned.Round(0).Sub(made.Round(0)) // by the wall clock
	if most := Forever - 365*24*time.Hour; d > most || d < -most {
		return 0, fmt.Errorf("aligned to is %v: more than 291 years away", w.aligned)
	}
	return d, nil
}
