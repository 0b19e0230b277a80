package decide

import (
	"sync"
	"sync/atomic"
	"time"
)

// wallClock keeps the windows of a calendar in step with the wall clock, which is set, and which
// goes on while the machine is suspended. Instants know of neither.
//
// It is read once a second. A step within a window moves the instants of the window; all counts
// stay. After any other one the windows have another number, as under another period: counts of
// windows that have ended by the wall clock are forgotten, the others go on in the window that the
// wall clock shows. So a key that spent its quota waits for the end of that one, and each step back
// lets a key have one quota more at most.
type wallClock struct {
	read  func() (wall time.Time, now int64)
	mu    sync.Mutex
	next  atomic.Int64 // instant of the next reading
	inUse atomic.Pointer[FixedWindow]
}

const (
	wallEvery = time.Second
	leastStep = time.Second // less moves no window, so that debt is carried exactly
)

// Follow returns f, of a calendar, with windows that follow the wall clock. read reads it, and the
// instant of the same moment.
func (f *FixedWindow) Follow(read func() (wall time.Time, now int64)) *FixedWindow {
	next := *f
	next.wall = &wallClock{read: read}
	next.wall.inUse.Store(&next)
	return &next
}

// in returns the windows in use at now, and the instant of now in them.
func (f *FixedWindow) in(now int64) (*FixedWindow, int64) {
	if f.wall == nil {
		return f, now
	}
	if now >= f.wall.next.Load() {
		f.wall.look()
	}
	f = f.wall.inUse.Load()
	return f, addSaturated(now, f.ahead)
}

// look reads the wall clock, unless another goroutine does.
func (w *wallClock) look() {
	if !w.mu.TryLock() {
		return
	}
	defer w.mu.Unlock()
	wall, now := w.read()
	f := w.inUse.Load()
	w.next.Store(now + f.calendar.Ticks(wallEvery))
	if step := wall.Sub(f.calendar.at(now + f.ahead)); step.Abs() >= leastStep {
		w.inUse.Store(f.stepped(wall, now, step))
	}
}

// stepped returns the windows after the wall clock was found to be at wall. Instants are never
// behind, or the table would take the place of a key that has spent units for free; and a window
// ahead at most, because that long it keeps a key for nothing.
func (f *FixedWindow) stepped(wall time.Time, now int64, step time.Duration) *FixedWindow {
	next, p := *f, f.calendar
	w := p.frame(now + f.ahead)
	over := !wall.Before(p.at(w.end))
	next.ahead += p.Ticks(step)
	if !over && !wall.Before(p.at(w.begin)) && next.ahead >= 0 && next.ahead <= f.window.by {
		return &next
	}
	next.calendar = &periods{Calendar: p.Calendar, Resolution: p.Resolution, zero: wall.Add(-p.since(now))}
	next.ahead = 0
	next.replace(f)
	if over {
		next.before = nil
	}
	return &next
}
