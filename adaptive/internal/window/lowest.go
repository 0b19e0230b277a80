package window

import "time"

// LowestSpan is the least time that a [Lowest] remembers.
const LowestSpan = int64(10 * time.Second)

// Lowest is the lowest value of the last 10 to 20 s: of work in flight, what stays there for long.
type Lowest struct {
	values [2]float64 // of this span, and of the one before
	since  int64      // begin of this span
}

// Add takes in the value at an instant.
func (l *Lowest) Add(at int64, v float64) {
	if at-l.since >= LowestSpan {
		l.values[1], l.values[0], l.since = l.values[0], v, at
	}
	l.values[0] = min(l.values[0], v)
}

// Value is at least 0.
func (l *Lowest) Value() float64 { return max(min(l.values[0], l.values[1]), 0) }

// Reset makes v the value.
func (l *Lowest) Reset(at int64, v float64) { l.values, l.since = [2]float64{v, v}, at }
