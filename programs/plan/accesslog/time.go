package accesslog

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// parseTime reads the times of logs: RFC 3339, that of the combined format, and seconds, milliseconds,
// microseconds or nanoseconds since 1970.
func parseTime(text string) (time.Time, error) {
	if len(text) > 2 && text[2] == '/' {
		return parseCommonTime(text)
	}
	if whole, part, _ := strings.Cut(text, "."); len(whole) >= 9 && !strings.ContainsAny(whole, "-:T ") {
		return parseUnix(text, whole, part)
	}
	t, err := time.Parse(time.RFC3339, text)
	if err == nil {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05.999999999Z0700", "2006-01-02 15:04:05Z07:00", time.DateTime, "2006/01/02 15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return t, fmt.Errorf("time is %q, want RFC 3339, 28/Nov/2026:21:50:00 +0000, or seconds since 1970", text)
}

// parseUnix reads a number of seconds with a decimal part, exactly, or of smaller units.
func parseUnix(text, whole, part string) (time.Time, error) {
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !(math.Abs(f) < 1e11) {
			return time.Time{}, fmt.Errorf("time is %q, want seconds since 1970", text)
		}
		n, part = int64(f), ""
	}
	switch {
	case n >= 1e17:
		return time.Unix(0, n).UTC(), nil
	case n >= 1e14:
		return time.UnixMicro(n).UTC(), nil
	case n >= 1e11:
		return time.UnixMilli(n).UTC(), nil
	}
	nanos, err := strconv.ParseInt((part + "000000000")[:9], 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("time is %q, want seconds since 1970", text)
	}
	return time.Unix(n, nanos).UTC(), nil
}

const commonTime = "02/Jan/2006:15:04:05 -0700"

// parseCommonTime reads 28/Nov/2026:21:50:00 +0000.
func parseCommonTime(s string) (time.Time, error) {
	wrong := func() (time.Time, error) {
		return time.Time{}, fmt.Errorf("time is %q, want 28/Nov/2026:21:50:00 +0000", s)
	}
	if len(s) != len(commonTime) || s[6] != '/' || s[11] != ':' || s[14] != ':' || s[17] != ':' || s[20] != ' ' {
		t, err := time.Parse("02/Jan/2006:15:04:05.999999999 -0700", s)
		if err != nil {
			return wrong()
		}
		return t, nil
	}
	month := strings.Index("JanFebMarAprMayJunJulAugSepOctNovDec", s[3:6])
	n := [7]int{}
	for i, at := range [7]int{0, 7, 12, 15, 18, 22, 24} {
		end := at + 2
		if at == 7 {
			end = 11
		}
		for _, c := range []byte(s[at:end]) {
			if c < '0' || c > '9' {
				return wrong()
			}
			n[i] = 10*n[i] + int(c-'0')
		}
	}
	if month%3 != 0 || n[0] < 1 || n[0] > 31 || n[2] > 23 || n[3] > 59 || n[4] > 60 || s[21] != '+' && s[21] != '-' {
		return wrong()
	}
	east := n[5]*3600 + n[6]*60
	if s[21] == '-' {
		east = -east
	}
	if time.Date(n[1], time.Month(month/3+1), n[0], 0, 0, 0, 0, time.UTC).Day() != n[0] {
		return wrong() // of February 31
	}
	return time.Date(n[1], time.Month(month/3+1), n[0], n[2], n[3], n[4]-east, 0, time.UTC), nil
}
