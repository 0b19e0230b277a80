package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// percent writes a share, small ones with more digits.
func percent(share float64) string {
	switch p := 100 * share; {
	case p == 0 || p >= 10:
		return fmt.Sprintf("%.0f %%", p)
	case p >= .1:
		return fmt.Sprintf("%.2f %%", p)
	default:
		return fmt.Sprintf("%.1g %%", p)
	}
}

// group writes a number with a space before each three digits.
func group(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}

// count writes a number of things, whose plural ends with s.
func count(n int64, thing string) string { return group(n) + " " + plural(n, thing, thing+"s") }

func plural(n int64, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// span writes seconds as a duration that can be read.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(100 * time.Millisecond)
	default:
		d = d.Round(time.Millisecond)
	}
	text := d.String()
	if d >= time.Minute && d%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	if d >= time.Hour && d%time.Hour == 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
