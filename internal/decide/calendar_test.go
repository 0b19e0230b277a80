package decide

import (
	_ "embed"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// zones lists every zone of the tz database.
//
//go:embed testdata/zones.txt
var zones string

func everyday(zone string) bool {
	switch zone {
	case "UTC", "Europe/Berlin", "America/St_Johns", "America/Sao_Paulo", "Pacific/Apia", "Australia/Lord_Howe",
		"Asia/Beirut", "Africa/Cairo", "Pacific/Kwajalein", "Asia/Kathmandu":
		return true
	}
	return false
}

func calendar(period time.Duration, zone string, start int64) *Calendar {
	return must(NewCalendar(period, zone, start))
}

// TestW2_CalendarsAgainstDates walks through 200 years. Each period begins where
// time.Date puts midnight of the next first date, or where the clocks skip or
// repeat it at the first instant of that date or a later one. In an everyday run it
// takes ten zones, chosen for their transitions, and 20 of the years.
func TestW2_CalendarsAgainstDates(t *testing.T) {
	first, last := 2005, 2024
	if cases.Long() {
		first, last = 1900, 2099
	}
	var days, odd int
	for zone := range strings.Lines(zones) {
		zone = strings.TrimSpace(zone)
		if !cases.Long() && !everyday(zone) {
			continue
		}
		for _, p := range []struct {
			period time.Duration
			start  int64
			next   func(date time.Time, n int) time.Time // midnight UTC of the n-th date from the first
		}{
			{Day, 0, func(d time.Time, n int) time.Time { return d.AddDate(0, 0, n) }},
			{Week, 1, func(d time.Time, n int) time.Time { return d.AddDate(0, 0, 7*n) }},
			{Month, 31, func(d time.Time, n int) time.Time {
				return time.Date(d.Year(), d.Month()+time.Month(n)+1, 0, 0, 0, 0, 0, time.UTC)
			}},
			{Quarter, 1, func(d time.Time, n int) time.Time { return d.AddDate(0, 3*n, 0) }},
		} {
			c := calendar(p.period, zone, p.start)
			from := time.Date(first, 1, 1, 0, 0, 0, 0, time.UTC)
			for p.period == Week && from.Weekday() != time.Monday {
				from = from.AddDate(0, 0, 1)
			}
			begin, _ := c.Period(time.Date(from.Year(), from.Month(), from.Day(), 12, 0, 0, 0, c.zone))
			if p.period == Month { // the middle of January belongs to the period before
				begin, _ = c.Period(time.Date(first, 1, 31, 12, 0, 0, 0, c.zone))
			}
			for n := 1; ; n++ {
				date := p.next(from, n)
				if date.Year() > last {
					break
				}
				_, end := c.Period(begin)
				if !requireBegins(t, c.zone, end, date) {
					require.Equal(t, Day, p.period, "only a date can be skipped: %s %v", zone, date)
					continue
				}
				length := end.Sub(begin)
				if length < p.period/2 { // require takes longer than the calendar
					t.Fatalf("%s %v: %v long", zone, date, length)
				}
				if p.period == Day {
					days++
					if length != Day {
						odd++
					}
				}
				begin = end
			}
		}
	}
	require.Positive(t, odd)
	t.Logf("W2: %d days against time.Date, %d of them not of 24 hours", days, odd)
}

// requireBegins checks that a period begins at begin, whose first date is date. It
// returns false if the zone skipped that date and begin is of a later one.
func requireBegins(t *testing.T, zone *time.Location, begin, date time.Time) bool {
	shows := func(at time.Time) time.Time { // the clocks of the zone, as if they were of UTC
		_, offset := at.In(zone).Zone()
		return at.UTC().Add(time.Duration(offset) * time.Second)
	}
	if shows(begin).Before(date) {
		t.Fatalf("%v: %v begins at %v", zone, date, begin)
	}
	before := shows(begin.Add(-1))
	if !before.Before(date) {
		return false
	}
	oracle := time.Date(date.Year(), date.Month(), date.Day(), 0, 0, 0, 0, zone)
	if !shows(oracle).Equal(date) { // no clock shows that midnight
		require.True(t, shows(begin).After(date))
		return true
	}
	if !begin.Equal(oracle) { // the clocks show it twice
		require.True(t, begin.Before(oracle), "%v: %v", zone, date)
		require.Equal(t, date, shows(begin))
	}
	return true
}

// TestCalendarPeriodsHoldTheirInstants: an instant lies in its period, and all
// instants of a period have the same one.
func TestCalendarPeriodsHoldTheirInstants(t *testing.T) {
	rnd := rand.New(rand.NewPCG(81, 82))
	names := strings.Fields(zones)
	for range cases.Count(20_000, 1_000_000) {
		period := []time.Duration{Day, Week, Month, Quarter}[rnd.IntN(4)]
		start := map[time.Duration]int64{Day: 1, Week: 7, Month: 31, Quarter: 31}[period]
		c := calendar(period, names[rnd.IntN(len(names))], rnd.Int64N(start+1))
		at := time.Unix(rnd.Int64N(200*366*86400)-70*365*86400, rnd.Int64N(1e9))
		begin, end := c.Period(at)
		require.False(t, at.Before(begin), "%v %v", c.zone, at)
		require.True(t, at.Before(end), "%v %v", c.zone, at)
		for _, other := range []time.Time{begin, end.Add(-1), begin.Add(time.Duration(rnd.Int64N(int64(end.Sub(begin)))))} {
			b, e := c.Period(other)
			require.True(t, b.Equal(begin) && e.Equal(end), "%v: %v and %v", c.zone, at, other)
		}
	}
}

// TestCalendarPeriods: the cases that users name.
func TestCalendarPeriods(t *testing.T) {
	const form = "2006-01-02 15:04"
	for _, c := range []struct {
		period     time.Duration
		zone       string
		start      int64
		at         string // in the zone
		begin, end string
		long       time.Duration
	}{
		{Day, "Europe/Berlin", 0, "2026-03-29 12:00", "2026-03-29 00:00", "2026-03-30 00:00", 23 * time.Hour},
		{Day, "Europe/Berlin", 0, "2026-10-25 02:30", "2026-10-25 00:00", "2026-10-26 00:00", 25 * time.Hour},
		{Day, "America/Sao_Paulo", 0, "2018-11-04 12:00", "2018-11-04 01:00", "2018-11-05 00:00", 23 * time.Hour}, // no midnight
		{Day, "America/St_Johns", 0, "2010-11-07 12:00", "2010-11-07 00:00", "2010-11-08 00:00", 25 * time.Hour},  // midnight twice
		{Day, "Pacific/Apia", 0, "2011-12-29 12:00", "2011-12-29 00:00", "2011-12-31 00:00", 24 * time.Hour},      // no 30th
		{Week, "UTC", 0, "2026-01-01 00:00", "2025-12-29 00:00", "2026-01-05 00:00", Week},
		{Week, "UTC", 7, "2026-01-01 00:00", "2025-12-28 00:00", "2026-01-04 00:00", Week},
		{Week, "Europe/Berlin", 1, "2026-03-29 23:59", "2026-03-23 00:00", "2026-03-30 00:00", Week - time.Hour},
		{Month, "UTC", 0, "2024-02-29 23:59", "2024-02-01 00:00", "2024-03-01 00:00", 29 * Day},
		{Month, "UTC", 31, "2024-02-28 23:59", "2024-01-31 00:00", "2024-02-29 00:00", 29 * Day},
		{Month, "UTC", 31, "2024-02-29 00:00", "2024-02-29 00:00", "2024-03-31 00:00", 31 * Day},
		{Month, "UTC", 31, "2025-03-30 23:59", "2025-02-28 00:00", "2025-03-31 00:00", 31 * Day},
		{Month, "UTC", 30, "2025-04-30 00:00", "2025-04-30 00:00", "2025-05-30 00:00", 30 * Day},
		{Quarter, "UTC", 0, "2026-03-31 23:59", "2026-01-01 00:00", "2026-04-01 00:00", 90 * Day},
		{Quarter, "UTC", 15, "2026-01-14 23:59", "2025-10-15 00:00", "2026-01-15 00:00", 92 * Day},
	} {
		cal := calendar(c.period, c.zone, c.start)
		at, err := time.ParseInLocation(form, c.at, cal.zone)
		require.NoError(t, err)
		begin, end := cal.Period(at)
		require.Equal(t, c.begin, begin.In(cal.zone).Format(form), "%+v", c)
		require.Equal(t, c.end, end.In(cal.zone).Format(form), "%+v", c)
		require.Equal(t, c.long, end.Sub(begin), "%+v", c)
	}
}

// TestW2_CalendarWindowDebt: debt of a period counts in the next one, of another
// length, and in no later one.
func TestW2_CalendarWindowDebt(t *testing.T) {
	zero := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := must(NewCalendarWindow(per(10, Month), calendar(Month, "UTC", 1), zero))
	at := func(month time.Month, day int) int64 {
		return ticks(time.Date(2026, month, day, 0, 0, 0, 0, time.UTC).Sub(zero))
	}
	word, v := f.Decide(0, at(1, 5), 8)
	require.True(t, v.Allowed)
	require.Equal(t, at(2, 1)-at(1, 5), v.ResetAfter)
	word, cut := f.ForceCharge(word, f.Charge(word, at(1, 5), 8, 0), at(1, 6), 6)
	require.False(t, cut)
	_, v = f.Decide(word, at(1, 7), 6)
	require.Equal(t, at(2, 1)-at(1, 7), v.RetryAfter)
	_, v = f.Decide(word, at(1, 7), 7)
	require.Equal(t, at(3, 1)-at(1, 7), v.RetryAfter)
	_, v = f.Decide(word, at(2, 27), 0)
	require.EqualValues(t, 6, v.Remaining)
	require.Equal(t, at(3, 1)-at(2, 27), v.ResetAfter)
	_, v = f.Decide(word, at(3, 1), 0)
	require.EqualValues(t, 10, v.Remaining)

	day := must(NewCalendarWindow(per(10, Day), calendar(Day, "UTC", 1), zero)).Succeed(f)
	_, v = day.Decide(word, at(1, 7), 0)
	require.Zero(t, v.Remaining, "the month was full")
	word, _ = f.Decide(0, at(4, 5), 3)
	_, v = day.Decide(word, at(4, 5), 0)
	require.EqualValues(t, 7, v.Remaining)
	_, v = day.Decide(word, at(5, 1), 0)
	require.EqualValues(t, 10, v.Remaining)
}

func TestCalendarErrors(t *testing.T) {
	for want, err := range map[string]error{
		`rate: period is 1h0m0s, want a day, week, month or quarter`:  errOf(NewCalendar(time.Hour, "UTC", 0)),
		`start day is 8, want 1 to 7`:                                 errOf(NewCalendar(Week, "UTC", 8)),
		`start day is -1, want 1 to 31`:                               errOf(NewCalendar(Month, "UTC", -1)),
		`start day is 2, want 1 to 1`:                                 errOf(NewCalendar(Day, "UTC", 2)),
		`zone is "Mars/Olympus", want a name of the tz database such`: errOf(NewCalendar(Day, "Mars/Olympus", 0)),
		`zone is "Local"`:                                             errOf(NewCalendar(Day, "Local", 0)),
		`rate: count is 43200000000001, want at most`:                 errOf(NewCalendarWindow(per(43200000000001, Day), calendar(Day, "UTC", 0), time.Unix(0, 0))),
	} {
		require.ErrorContains(t, err, want)
	}
}

func BenchmarkCalendarWindow(b *testing.B) {
	f := must(NewCalendarWindow(per(1e9, Day), calendar(Day, "Europe/Berlin", 0), time.Now()))
	b.ReportAllocs()
	var word int64
	for i := range int64(b.N) {
		word, _ = f.Admit(word, year+i, 1)
	}
}
