package algo

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Rate is Count units in each Period, spread evenly: PerMinute(60) and
// PerSecond(1) are the same rate, and differ only in the default [Burst].
//
// Limits accept rates from 1 per year to 1e9 per second. The time of one unit
// is rounded up to 1/64 ns, so that a limit is never faster than specified: at
// most 1.6 % slower at 1e9/s, 0.02 % at 1e7/s, and 1e-6 below 1e5/s.
type Rate struct {
	Count  int64
	Period time.Duration
}

// PerSecond returns n units per second.
func PerSecond(n int64) Rate { return Rate{n, time.Second} }

// PerMinute returns n units per minute.
func PerMinute(n int64) Rate { return Rate{n, time.Minute} }

// PerHour returns n units per hour.
func PerHour(n int64) Rate { return Rate{n, time.Hour} }

// PerDay returns n units per 24 hours.
func PerDay(n int64) Rate { return Rate{n, 24 * time.Hour} }

// Per returns n units in each period.
func Per(n int64, period time.Duration) Rate { return Rate{n, period} }

// Every returns one unit in each d.
func Every(d time.Duration) Rate { return Rate{1, d} }

// String returns the rate as [ParseRate] reads it: "100/s", "5/15m0s".
func (r Rate) String() string {
	switch r.Period {
	case time.Second:
		return fmt.Sprintf("%d/s", r.Count)
	case time.Minute:
		return fmt.Sprintf("%d/min", r.Count)
	case time.Hour:
		return fmt.Sprintf("%d/h", r.Count)
	case 24 * time.Hour:
		return fmt.Sprintf("%d/day", r.Count)
	}
	return fmt.Sprintf("%d/%s", r.Count, r.Period)
}

// ParseRate reads a rate in the form of [Rate.String]: a count, a slash and a
// period, such as "100/s" or "5/15m". The period is one of s, sec, second, m,
// min, minute, h, hour, d and day, or a duration in the form of
// [time.ParseDuration]. The error names the field and its value.
func ParseRate(s string) (Rate, error) {
	count, period, ok := strings.Cut(s, "/")
	if !ok {
		return Rate{}, fmt.Errorf("algo: rate: %q, want count/period such as 100/min", s)
	}
	n, err := parseInt(count)
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

// UnmarshalText reads a rate as [ParseRate] does.
func (r *Rate) UnmarshalText(text []byte) error {
	parsed, err := ParseRate(string(text))
	if err == nil {
		*r = parsed
	}
	return err
}

func parsePeriod(s string) (time.Duration, error) {
	switch s {
	case "s", "sec", "second":
		return time.Second, nil
	case "m", "min", "minute":
		return time.Minute, nil
	case "h", "hour":
		return time.Hour, nil
	case "d", "day":
		return 24 * time.Hour, nil
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
func (r Rate) validate() error {
	switch {
	case r.Count <= 0:
		return fmt.Errorf("rate: count is %d, want 1 or more", r.Count)
	case r.Period <= 0:
		return fmt.Errorf("rate: period is %v, want more than 0", r.Period)
	case r.Period > maxSpan:
		return fmt.Errorf("rate: period is %v, want at most %v", r.Period, maxSpan)
	case r.Count > int64(r.Period):
		return fmt.Errorf("rate: %v is faster than 1e9 per second", r)
	}
	return nil
}

// emission returns the time of one unit in ticks, rounded up.
func (r Rate) emission() int64 {
	period := toTicks(r.Period)
	t := period / r.Count
	if period%r.Count != 0 {
		t++
	}
	return t
}

// span returns the time of n units in ticks: at most maxSpan at the exact rate,
// and at most 1/64 more with each unit rounded up. The error names the field.
func (r Rate) span(field string, n int64) (int64, error) {
	hi, lo := bits.Mul64(uint64(n), uint64(r.Period))
	mostHi, most := bits.Mul64(uint64(r.Count), uint64(maxSpan))
	if hi > mostHi || hi == mostHi && lo > most {
		return 0, fmt.Errorf("%s is %d: at %v it takes longer than %v to fill", field, n, r, maxSpan)
	}
	return n * r.emission(), nil
}

// timeFor returns the time in which the rate admits n units, at most a year,
// rounded up to whole nanoseconds. It is for descriptions: span rounds each unit.
func (r Rate) timeFor(n int64) time.Duration {
	hi, lo := bits.Mul64(uint64(n), uint64(r.Period))
	d, rest := bits.Div64(hi, lo, uint64(r.Count))
	if rest > 0 {
		d++
	}
	return time.Duration(d)
}
