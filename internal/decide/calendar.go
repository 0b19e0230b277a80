package decide

import (
	"fmt"
	"math"
	"time"
)

// Lengths of the periods of a [Calendar]. A month and a quarter count as their
// longest.
const (
	Day     = 24 * time.Hour
	Week    = 7 * Day
	Month   = 31 * Day
	Quarter = 92 * Day
)

// Calendar divides time into days, weeks, months or quarters of a time zone. A
// period begins at the first instant at which the clocks of the zone show
// midnight of its first day, or a later time where daylight saving skips
// midnight. So a day has 23 to 25 hours around daylight saving, and a day that
// a zone skipped has no period.
type Calendar struct {
	zone   *time.Location
	days   int // in a period, or 0
	months int // in a period, or 0
	start  int // day of the month, or the number of a period's first day since 1970
}

// NewCalendar makes the calendar of a period of [Day], [Week], [Month] or
// [Quarter] in a zone of the tz database. start is the day on which a period
// begins: of the week, 1 for Monday to 7, or of the (first) month, 1 to 31, which
// is the last day in shorter months; 0 means 1. The error names the field.
func NewCalendar(period time.Duration, zone string, start int64) (*Calendar, error) {
	c, most := &Calendar{}, int64(1)
	switch period {
	case Day:
		c.days = 1
	case Week:
		c.days, most = 7, 7
	case Month:
		c.months, most = 1, 31
	case Quarter:
		c.months, most = 3, 31
	default:
		return nil, fmt.Errorf("rate: period is %v, want a day, week, month or quarter with a zone", period)
	}
	if start < 0 || start > most {
		return nil, fmt.Errorf("start day is %d, want 1 to %d", start, most)
	}
	c.start = max(int(start), 1)
	if c.days == 7 {
		c.start += 3 // day 4 since 1970 was a Monday
	}
	var err error
	if zone == "" || zone == "Local" { // time.LoadLocation accepts these
		err = fmt.Errorf("unknown time zone %s", zone)
	} else {
		c.zone, err = time.LoadLocation(zone)
	}
	if err != nil {
		return nil, fmt.Errorf("zone is %q, want a name of the tz database such as Europe/Berlin or UTC, with the database installed or time/tzdata imported: %w", zone, err)
	}
	return c, nil
}

// equal reports whether c and d divide time equally.
func (c *Calendar) equal(d *Calendar) bool {
	return c == d || c != nil && d != nil && c.days == d.days && c.months == d.months &&
		c.start == d.start && c.zone.String() == d.zone.String()
}

// Period returns the period that holds t.
func (c *Calendar) Period(t time.Time) (begin, end time.Time) {
	i := c.index(t)
	begin, end = c.begin(i), c.begin(i+1)
	for !end.After(t) { // the clocks were set back past midnight
		i++
		begin, end = end, c.begin(i+1)
	}
	return begin, end
}

// index returns the number of the period that holds the zone's date at t.
func (c *Calendar) index(t time.Time) int {
	y, m, d := t.In(c.zone).Date()
	date := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	if c.months == 0 {
		return floorDiv(int(date.Unix()/86400)-c.start, c.days)
	}
	i := floorDiv(y*12+int(m)-1, c.months)
	if date.Before(c.date(i)) {
		i--
	}
	return i
}

// date returns midnight UTC of the first date of period i.
func (c *Calendar) date(i int) time.Time {
	if c.months == 0 {
		return time.Unix(int64(i*c.days+c.start)*86400, 0).UTC()
	}
	m := time.Month(i*c.months + 1)
	last := time.Date(0, m+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return time.Date(0, m, min(c.start, last), 0, 0, 0, 0, time.UTC)
}

// begin returns the first instant at which the zone's clocks show the first date of period i, or a
// later one.
func (c *Calendar) begin(i int) time.Time {
	date := c.date(i)
	t := date.Add(-26 * time.Hour).In(c.zone) // before that date everywhere
	for {
		_, offset := t.Zone()
		_, until := t.ZoneBounds()
		if !until.IsZero() && !until.After(t) { // Go 1.26 returns such a bound for 31 December 2040
			until = t.Add(time.Hour)
		}
		midnight := date.Add(-time.Duration(offset) * time.Second)
		if midnight.Before(t) { // the clocks skip it
			midnight = t
		}
		if until.IsZero() || midnight.Before(until) {
			return midnight
		}
		t = until
	}
}

func floorDiv(a, b int) int { return int(math.Floor(float64(a) / float64(b))) }
