package decide

import (
	"fmt"
	"sync/atomic"
	"time"
)

// NewCalendarWindow makes a fixed window of r.Count units in each period of c. Its clock starts at
// zero. No period is shorter than half of r.Period, so the bound of the count leaves room for debt.
func NewCalendarWindow(r Rate, c *Calendar, zero time.Time) (*FixedWindow, error) {
	f, err := NewFixedWindow(r, 0, false)
	if err != nil {
		return nil, err
	}
	if most := int64(r.Period / r.step / 2); r.Count > most {
		return nil, fmt.Errorf("rate: count is %d, want at most %d in a period of the calendar", r.Count, most)
	}
	f.calendar = &periods{Calendar: c, Resolution: r.Resolution, zero: zero.Round(0)}
	return f, nil
}

// dates returns the calendar, or nil.
func (f *FixedWindow) dates() *Calendar {
	if f.calendar == nil {
		return nil
	}
	return f.calendar.Calendar
}

// periods is a [Calendar] on a clock.
type periods struct {
	*Calendar
	Resolution
	zero   time.Time // the instant 0
	latest atomic.Pointer[frame]
}

// frame is a window and the length of the next one.
type frame struct{ begin, end, by int64 }

// frame returns the window that holds now. It computes a window only if now is
// outside the window of the previous call.
func (p *periods) frame(now int64) frame {
	if l := p.latest.Load(); l != nil && l.begin <= now && now < l.end {
		return *l
	}
	begin, end := p.Period(p.at(now))
	_, after := p.Period(end)
	l := frame{begin: p.ticks(begin), end: p.ticks(end)}
	l.by = p.ticks(after) - l.end
	p.latest.Store(&l)
	return l
}

// at returns the time of an instant.
func (p *periods) at(now int64) time.Time { return p.zero.Add(p.since(now)) }

func (p *periods) since(now int64) time.Duration { return time.Duration(now>>p.shift) * p.step }

func (p *periods) ticks(t time.Time) int64 { return p.Ticks(t.Sub(p.zero)) }
