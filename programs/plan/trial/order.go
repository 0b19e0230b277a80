package trial

import (
	"maps"
	"slices"
	"time"
)

// order sorts events that are out of order by less than a window. It keeps them by the second.
type order struct {
	window  int64 // ns
	seconds map[int64]batch
	newest  int64 // second
	sent    int64 // second up to which events were sent
	begun   bool
}

const second = int64(time.Second)

// late reports whether an event is too late to be sorted.
func (o *order) late(at int64) bool { return o.begun && at/second <= o.sent }

func (o *order) add(e event) {
	at := e.at / second
	if !o.begun {
		o.begun, o.newest, o.sent = true, at, at-o.window/second-1
	}
	o.seconds[at] = append(o.seconds[at], e)
	o.newest = max(o.newest, at)
}

// due returns the events of the seconds that the window has passed.
func (o *order) due() batch {
	until := o.newest - o.window/second - 1
	if until <= o.sent {
		return nil
	}
	return o.take(until)
}

// rest returns all events that are left.
func (o *order) rest() batch { return o.take(o.newest) }

func (o *order) take(until int64) (events batch) {
	for _, at := range slices.Sorted(maps.Keys(o.seconds)) {
		if at > until {
			break
		}
		one := o.seconds[at]
		delete(o.seconds, at)
		slices.SortStableFunc(one, func(a, b event) int { return int(min(max(a.at-b.at, -1), 1)) })
		if events == nil {
			events = one
		} else {
			events = append(events, one...)
		}
	}
	o.sent = max(o.sent, until)
	return events
}
