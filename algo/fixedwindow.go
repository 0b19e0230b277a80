package algo

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo/internal/engine"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
)

// NewFixedWindow makes a limiter that admits r.Count units in each window of time, and refills all of
// them at the window's end: so many calls a day, so many messages a month.
//
// Each window lasts for the rate's period, the first from when the limiter was made; the fields
// Offset, AlignedTo and Spread of [Spec] move them. With [Zone] they are days, weeks, months or
// quarters of the calendar. The options are [Zone], [StartDay], [MaxKeys] and [DenyNew]. The error
// names the field and the invalid value.
//
// Bound: at most the quota in each window, and so at most twice the quota in any time up to a window's
// length. A denial does not count. Units refunded while the window lasts can be spent again; later
// they cannot.
//
// State is one word a key, swapped without a lock.
//
// Do not use it against peaks: callers may spend two quotas within moments around an edge.
// [NewTokenBucket] spreads them; [NewSlidingWindow] with [Cells] keeps the quota in any window.
func NewFixedWindow(r Rate, opts ...Option) (*RateLimiter, error) {
	return fixedWindow.construct(Spec{Rate: r}, opts)
}

var fixedWindow = kind{"fixed-window", "fixed window", []string{"Offset", "AlignedTo", "Zone", "StartDay", "Spread", "MaxKeys", "DenyNew"}, inWords(fixedWindowLimit)}

func fixedWindowLimit(s Spec, _ Rate, old engine.Decider[int64], clock *keystore.Clock) (l engine.Limit[int64], err error) {
	f, err := newWindows(s, clock)
	if err != nil {
		return l, err
	}
	if old != nil {
		f = f.Succeed(old.(*decide.FixedWindow))
	}
	l = engine.Limit[int64]{Decider: f, Window: s.Rate.Period, Live: f.Unspent}
	if s.Spread {
		l.Phase = f.Phase
	}
	return l, nil
}

// newWindows makes windows of the calendar or of fixed length.
func newWindows(s Spec, clock *keystore.Clock) (*decide.FixedWindow, error) {
	if err := s.Rate.validate(); err != nil {
		return nil, err
	}
	c, err := s.calendar()
	if err != nil {
		return nil, err
	}
	if c != nil {
		wall, now := clock.Wall()
		f, err := decide.NewCalendarWindow(s.Rate.local(), c, wall.Add(-keystore.ToDuration(now)))
		if err != nil {
			return nil, err
		}
		return f.Follow(clock.Wall), nil
	}
	edge, err := windowEdge(s, clock.Start.Add(1))
	if err != nil {
		return nil, err
	}
	return decide.NewFixedWindow(s.Rate.local(), keystore.ToTicks(edge+1), s.Spread)
}

// calendar returns the calendar of the windows, nil for windows of fixed length.
func (s *Spec) calendar() (*decide.Calendar, error) {
	zone := s.Given("zone")
	for _, other := range []string{"offset", "aligned", "spread"} {
		if zone && s.Given(other) {
			return nil, fmt.Errorf("zone is %q: it cannot be combined with %s", s.Zone, other)
		}
	}
	switch {
	case zone:
		return decide.NewCalendar(s.Rate.Period, s.Zone, s.StartDay)
	case s.Given("start"):
		return nil, fmt.Errorf("start is %d: it needs a zone, such as UTC", s.StartDay)
	case s.Rate.Period == Month || s.Rate.Period == Quarter:
		return nil, fmt.Errorf("rate: %v needs a zone, such as UTC: months differ in length", s.Rate)
	}
	return nil, nil
}

// windowEdge returns where in the period, counted from made, the windows begin.
func windowEdge(s Spec, made time.Time) (time.Duration, error) {
	switch edge := s.Offset % s.Rate.Period; {
	case s.Offset < 0:
		return 0, fmt.Errorf("offset is %v, want 0 or more", s.Offset)
	case s.AlignedTo.IsZero():
		return edge, nil
	case s.Spread:
		return 0, fmt.Errorf("aligned to is %v: it cannot be combined with Spread", s.AlignedTo)
	default:
		d := s.AlignedTo.Round(0).Sub(made.Round(0)) // by the wall clock
		if most := Forever - 365*24*time.Hour; d > most || d < -most {
			return 0, fmt.Errorf("aligned to is %v: more than 291 years away", s.AlignedTo)
		}
		return (d + edge) % s.Rate.Period, nil
	}
}
