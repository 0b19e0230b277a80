package algo

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/internal/decide"
)

// Rate is Count units in each Period, spread evenly: PerMinute(60) and PerSecond(1) differ only in
// the default [Burst].
//
// Limits accept rates from 1 per year to 1e9 per second. The time of one unit is rounded up to 1/64
// ns, so that a limit is never faster than specified: at most 1.6 % slower at 1e9/s, 0.02 % at
// 1e7/s, and 1e-6 below 1e5/s.
//
// Rates and bursts of 0, of infinity and beyond these limits are errors in constructors, changes,
// text and JSON, because they are often mistakes of configuration: use [DenyAll] or [Unlimited]. (A
// burst of 0 has a meaning in nginx and smooth-bursty alone.)
type Rate struct {
	Count  int64
	Period time.Duration
}

// PerSecond returns n units per second.
func PerSecond(n int64) Rate { return Rate{n, time.Second} }

// PerSecondFloat returns the rate of f units per second, such as 0.5 or 2.5, as the next whole
// number of units in the time that they take. That time is rounded up to a nanosecond, so the rate
// is never faster than f, and exact if it is whole (0.5 is 1/2s, 2.5 is 3/1.2s). A limit returns an
// error for the rate of an f below 1 per year, above 1e9, or that is no number.
func PerSecondFloat(f float64) Rate {
	switch {
	case !(f > 0):
		return Rate{0, time.Second}
	case f > 1e9:
		return Rate{math.MaxInt64, time.Second}
	}
	count := math.Ceil(f)
	period := math.Ceil(count / f * float64(time.Second))
	return Rate{int64(count), time.Duration(min(period, 1<<62))}
}

// PerMinute returns n units per minute.
func PerMinute(n int64) Rate { return Rate{n, time.Minute} }

// PerHour returns n units per hour.
func PerHour(n int64) Rate { return Rate{n, time.Hour} }

// PerDay returns n units per 24 hours.
func PerDay(n int64) Rate { return Rate{n, 24 * time.Hour} }

// Week, Month and Quarter are periods of a [Rate]. In [NewFixedWindow] with the
// option [Zone] they are calendar periods. Elsewhere a month is 31 days, the
// longest one, and a quarter 92 days.
const (
	Week    = decide.Week
	Month   = decide.Month
	Quarter = decide.Quarter
)

// Per returns n units in each period.
func Per(n int64, period time.Duration) Rate { return Rate{n, period} }

// Every returns one unit in each d.
func Every(d time.Duration) Rate { return Rate{1, d} }

// String returns the rate as UnmarshalText reads it: "100/s", "5/15m0s".
func (r Rate) String() string { return r.local().String() }

func parseRate(s string) (Rate, error) {
	count, period, ok := strings.Cut(s, "/")
	if !ok {
		return Rate{}, fmt.Errorf("algo: rate: %q, want count/period such as 100/min", s)
	}
	n, err := parseInt(strings.TrimSuffix(count, "r"))
	if err != nil {
		return Rate{}, fmt.Errorf("algo: rate: count is %q, %w", count, err)
	}
	d, err := parsePeriod(period)
	if err != nil {
		return Rate{}, fmt.Errorf("algo: rate: period is %q, %w", period, err)
	}
	r := Rate{n, d}
	if err := r.validate(); err != nil {
		return Rate{}, fmt.Errorf("algo: %w", err)
	}
	return r, nil
}

// MarshalText returns the rate as String does, and an error for a rate that no
// limit accepts.
func (r Rate) MarshalText() ([]byte, error) {
	if err := r.validate(); err != nil {
		return nil, fmt.Errorf("algo: %w", err)
	}
	return []byte(r.String()), nil
}

// UnmarshalText reads a count, a slash and a period, such as "100/s" or "5/15m", or as nginx writes
// it, "100r/s". The period is one of s, sec, second, m, min, minute, h, hour, d, day, week, month
// and quarter, or a duration in the form of [time.ParseDuration]. An error names the field and its
// value and leaves r unchanged.
func (r *Rate) UnmarshalText(text []byte) error {
	parsed, err := parseRate(string(text))
	if err == nil {
		*r = parsed
	}
	return err
}

func parsePeriod(s string) (time.Duration, error) {
	for _, p := range decide.Periods {
		if s == p.Short || s == p.Long || s == p.Other {
			return p.Length, nil
		}
	}
	d, err := parseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%w, or s, min, h or day", err)
	}
	return d, nil
}

const forever = "forever"

// parseDuration reads a duration of 0 or more, or forever.
func parseDuration(s string) (time.Duration, error) {
	if s == forever {
		return Forever, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return d, nil
	}
	return 0, fmt.Errorf("want a duration such as 500ms")
}

// parseInt reads a whole number of 0 or more, in digits only.
func parseInt(s string) (int64, error) {
	if n, err := strconv.ParseUint(s, 10, 63); err == nil {
		return int64(n), nil
	}
	return 0, fmt.Errorf("want a whole number")
}

func formatDuration(d time.Duration) string {
	if d == Forever {
		return forever
	}
	return d.String()
}

// validate returns an error that names the invalid field and its value.
func (r Rate) validate() error { return r.local().Validate() }

// local returns r on the clock of this process.
func (r Rate) local() decide.Rate {
	return decide.Rate{Count: r.Count, Period: r.Period, Resolution: decide.Nanoseconds}
}
