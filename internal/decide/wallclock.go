package decide

import (
	"sync"
	"sync/atomic"
	"time"
)

// wallClock keeps a calendar's windows in step with the wall clock, which can be set and continues
// while the machine is suspended; instants show neither.
//
// It is read once a second. A step within a window moves the instants of the window; all counts
// stay. Any other step renumbers the windows, as another period does: counts of windows that have
// ended by the wall clock are forgotten, the others continue in its current window. So a key that
// spent its quota waits for the end of that one, and each step back admits at most one more quota
// per key.
type wallClock struct {
	read  func() (wall time.Time, now int64)
	mu    sync.Mutex
	next  atomic.Int64 // instant of the next reading
	inUse atomic.Pointer[FixedWindow]
}

const (
	wallEvery = time.Second
	leastStep = time.Second // a smaller step moves no window, so that debt carries exactly
)

// Follow returns f, of a calendar, with windows that follow the wall clock. read returns its time
// and the instant of the same moment.
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

// stepped returns the windows after the wall clock has stepped to wall. Instants are never behind,
// or the table would take the slot of a key with spent units for free; and at most a window ahead,
// for which the table keeps a key needlessly.
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
