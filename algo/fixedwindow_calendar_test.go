package algo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func zoned(t *testing.T, text string) *algo.RateLimiter {
	t.Helper()
	s, err := algo.Parse(text)
	require.NoError(t, err)
	l, err := s.New()
	require.NoError(t, err)
	return l
}

// sleepUntil sleeps until at.
func sleepUntil(at time.Time) { time.Sleep(time.Until(at)) }

// TestW2_CalendarWindowsFollowTheDates: in each window exactly the quota fits, and
// RetryAfter is the edge to the nanosecond, over daylight saving and short months.
func TestW2_CalendarWindowsFollowTheDates(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	date := func(month time.Month, day int) time.Time { return time.Date(2000, month, day, 0, 0, 0, 0, berlin) }
	for text, c := range map[string]struct {
		from  time.Time
		edges []time.Time
	}{
		"fixed-window 3/day zone Europe/Berlin":            {date(3, 25), []time.Time{date(3, 26), date(3, 27), date(3, 28)}},
		"fixed-window 3/week zone Europe/Berlin":           {date(10, 24), []time.Time{date(10, 30), date(11, 6)}},
		"fixed-window 3/week start 7 zone Europe/Berlin":   {date(10, 24), []time.Time{date(10, 29), date(11, 5)}},
		"fixed-window 3/month zone Europe/Berlin":          {date(1, 31), []time.Time{date(2, 1), date(3, 1), date(4, 1)}},
		"fixed-window 3/month start 31 zone Europe/Berlin": {date(1, 30), []time.Time{date(1, 31), date(2, 29), date(3, 31), date(4, 30)}},
		"fixed-window 3/quarter zone Europe/Berlin":        {date(2, 1), []time.Time{date(4, 1), date(7, 1)}},
	} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sleepUntil(c.from.Add(-time.Hour))
				l := zoned(t, text)
				sleepUntil(c.from)
				for _, edge := range c.edges {
					require.EqualValues(t, 3, spendAll(l, "k"))
					lease := acquire(t, l, "k", 1)
					require.Equal(t, edge, time.Now().Add(lease.RetryAfter).In(berlin))
					sleepUntil(edge.Add(-1))
					require.False(t, l.Allow("k", 1))
					sleepUntil(edge)
				}
				require.EqualValues(t, 3, spendAll(l, "k"))
			})
		})
	}
}

// TestCalendarWindowSettles: units are refunded in their own window only, and a
// settlement above the quota is debt in the next window only.
func TestCalendarWindowSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it begins on 2000-01-01 UTC
		l := zoned(t, "fixed-window 10/month zone UTC")
		first, over, late := acquire(t, l, "k", 6), acquire(t, l, "k", 4), acquire(t, l, "other", 5)
		first.Settle(2)
		require.EqualValues(t, 4, acquire(t, l, "k", 0).Remaining)
		over.Settle(11) // 3 more than fit
		sleepUntil(time.Date(2000, 2, 1, 0, 0, 0, 0, time.UTC))
		require.EqualValues(t, 7, spendAll(l, "k"))
		late.Settle(0)
		require.EqualValues(t, 10, acquire(t, l, "other", 0).Remaining)
		sleepUntil(time.Date(2000, 3, 1, 0, 0, 0, 0, time.UTC))
		require.EqualValues(t, 10, spendAll(l, "k"))
	})
}

// TestCalendarWindowChanges: the quota and the period change in use, and the
// units spent in the current window stay spent.
func TestCalendarWindowChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := zoned(t, "fixed-window 10/day zone UTC")
		require.True(t, l.Allow("k", 6))
		require.NoError(t, l.SetRate(algo.PerDay(20)))
		require.EqualValues(t, 14, acquire(t, l, "k", 0).Remaining)
		require.NoError(t, l.SetRate(algo.Per(20, algo.Month)))
		require.EqualValues(t, 14, acquire(t, l, "k", 0).Remaining)
		require.ErrorContains(t, l.SetRate(algo.PerHour(20)), "rate: period is 1h0m0s, want a day, week, month or quarter with a zone")
		sleepUntil(time.Date(2000, 2, 1, 0, 0, 0, 0, time.UTC))
		require.EqualValues(t, 20, spendAll(l, "k"))
		other, err := algo.Parse("fixed-window 20/month zone Europe/Rome")
		require.NoError(t, err)
		require.ErrorContains(t, other.Apply(l), "zone is Europe/Rome and cannot be changed from UTC")
	})
}

func TestCalendarWindowErrors(t *testing.T) {
	day, month := algo.PerDay(5), algo.Per(5, algo.Month)
	for want, err := range map[string]error{
		"rate: 5/month needs a zone, such as UTC":          errOf(algo.NewFixedWindow(month)),
		"rate: 5/quarter needs a zone":                     errOf(algo.NewFixedWindow(algo.Per(5, algo.Quarter), algo.Spread())),
		"start is 3: it needs a zone":                      errOf(algo.NewFixedWindow(day, algo.StartDay(3))),
		`zone is "UTC": it cannot be combined with offset`: errOf(algo.NewFixedWindow(day, algo.Zone("UTC"), algo.Offset(1))),
		`cannot be combined with aligned`:                  errOf(algo.NewFixedWindow(day, algo.Zone("UTC"), algo.AlignedTo(time.Unix(0, 0)))),
		`cannot be combined with spread`:                   errOf(algo.NewFixedWindow(day, algo.Zone("UTC"), algo.Spread())),
		`zone is "", want a name of the tz database`:       errOf(algo.NewFixedWindow(day, algo.Zone(""))),
		`zone is "Berlin", want a name of the tz database`: errOf(algo.NewFixedWindow(day, algo.Zone("Berlin"))),
		`start day is 32, want 1 to 31`:                    errOf(algo.NewFixedWindow(month, algo.Zone("UTC"), algo.StartDay(32))),
		`token bucket: does not take the option Zone`:      errOf(algo.NewTokenBucket(day, algo.Zone("UTC"))),
		`want a name without spaces`:                       new(algo.Spec).UnmarshalJSON([]byte(`{"algorithm":"fixed-window","rate":"5/day","zone":"Europe/New York"}`)),
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestCalendarWindowAllocatesNothing(t *testing.T) {
	l := zoned(t, "fixed-window 1000000/month zone Europe/Berlin")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		lease, _ := l.Acquire(context.Background(), "k", 1)
		lease.Settle(2)
		lease.Release(algo.Succeeded)
	}))
}

// A subscription that renews on the last day of each month, in Berlin's time. In
// the text form it is "fixed-window 1000/month zone Europe/Berlin start 31".
func ExampleZone() {
	monthly := algo.Must(algo.NewFixedWindow(algo.Per(1000, algo.Month), algo.Zone("Europe/Berlin"), algo.StartDay(31)))

	lease, _ := monthly.Acquire(context.Background(), "ann", 1)
	berlin, _ := time.LoadLocation("Europe/Berlin")
	renews := time.Now().Add(lease.ResetAfter).In(berlin).Round(time.Minute)
	fmt.Println(renews.Format("15:04"), renews.AddDate(0, 0, 1).Day())
	// Output: 00:00 1
}

// Weeks from Sunday in New York, from a file.
func ExampleStartDay() {
	var spec algo.Spec
	err := json.Unmarshal([]byte(`{"algorithm": "fixed-window", "rate": "500/week", "zone": "America/New_York", "start": 7}`), &spec)
	fmt.Println(spec, err, spec.StartDay, time.Weekday(spec.StartDay%7))
	// Output: fixed-window 500/week zone America/New_York start 7 <nil> 7 Sunday
}
