package algo

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseRate reads a rate as [Rate.String] writes it: a count, a slash, and the
// period, which is s, min (or m), h or day (or d), one of second, minute and
// hour, or a duration as time.ParseDuration reads it: "100/s", "5/15m".
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

// MarshalText writes the rate as String does. A rate that no limit can keep is
// an error.
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
