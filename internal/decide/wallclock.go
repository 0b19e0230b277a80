package decide

import (
	"sync"
	"sync/atomic"
	"time"
)

// wallClock keeps the windows of a calendar in step with the wall clock, which is set, and which
// goes on while the machine is suspended. Instants know of neither.
//
// It is read once a second. After a step the windows have another number, as under another
// period: counts of windows that have ended by the wall clock are forgotten, the others go on in
// the window that the wall clock shows. So a key that spent its quota waits for the end of that
// one, and each step back lets a key have one quota more at most.
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

// in returns the windows in use at now.
func (f *FixedWindow) in(now int64) *FixedWindow {
	if f.wall == nil {
		return f
	}
	if now >= f.wall.next.Load() {
		f.wall.look()
	}
	return f.wall.inUse.Load()
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
	if wall.Sub(f.calendar.at(now)).Abs() >= leastStep {
		w.inUse.Store(f.stepped(wall, now))
	}
}

// stepped returns the windows after the wall clock was found to be at wall.
func (f *FixedWindow) stepped(wall time.Time, now int64) *FixedWindow {
	next, p := *f, f.calendar
	next.calendar = &periods{Calendar: p.Calendar, Resolution: p.Resolution, zero: wall.Add(-p.since(now))}
	next.replace(f)
	if !wall.Before(p.at(f.end(now))) {
		next.before = nil
	}
	return &next
}
