package serverwait

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Quota is the wait that fields of a server without a standard ask for: until the
// last reset of the quotas of which nothing remains, and if the call failed, the time
// in milliseconds of retry-after-ms. A quota has a field with "remaining" in its name,
// and one with "reset" in its place. clock is the server's.
func Quota(fields map[string][]string, failed bool, clock func() time.Time) (d time.Duration) {
	for name, lines := range fields {
		if len(lines) == 0 {
			continue
		}
		switch {
		case strings.Contains(name, "emaining"):
			reset := strings.Replace(name, "emaining", "eset", 1)
			if isQuota(name) && spent(lines[0]) && len(fields[reset]) > 0 {
				d = max(d, untilReset(fields[reset][0], clock))
			}
		case failed && len(name) >= len(retryAfterMs) && strings.EqualFold(name[len(name)-len(retryAfterMs):], retryAfterMs):
			d = max(d, number(lines[0], time.Millisecond))
		}
	}
	return d
}

// Quotas calls each with the requests that remain of each quota of which some remain, and the
// seconds until its reset. Quotas of tokens and bytes are left out.
func Quotas(fields map[string][]string, clock func() time.Time, each func(requests, seconds float64)) {
	for name, lines := range fields {
		at := strings.Index(name, "emaining")
		if at < 0 || len(lines) == 0 || !isQuota(name) || isOtherUnit(name) {
			continue
		}
		n, ok := parse(lines[0])
		if reset := fields[name[:at]+"eset"+name[at+len("emaining"):]]; ok && n > 0 && len(reset) > 0 {
			if d := untilReset(reset[0], clock); d >= time.Second { // sooner, the rest of a quota says little
				each(n, d.Seconds())
			}
		}
	}
}

func isOtherUnit(name string) bool {
	return strings.Contains(name, "oken") || strings.Contains(name, "yte")
}

// retryAfterMs is how the fields end that give a wait in milliseconds:
// retry-after-ms, x-ms-retry-after-ms.
const retryAfterMs = "retry-after-ms"

// isQuota reports whether a field is about a rate limit: x-ratelimit-remaining,
// x-rate-limit-remaining, x-ratelimit-remaining-tokens, NAME-ratelimit-tokens-remaining, in the
// case of net/http or of gRPC.
func isQuota(name string) bool {
	return strings.Contains(name, "atelimit") || strings.Contains(name, "ate-limit") || strings.Contains(name, "ate-Limit")
}

func spent(remaining string) bool {
	n, ok := parse(remaining)
	return ok && n <= 0
}

// leastEpoch is the least number that is an instant, in seconds since 1970, and not a
// number of seconds (32 years), leastEpochMs that in milliseconds.
const leastEpoch, leastEpochMs = 1e9, 1e11

// untilReset is the time until a reset, which is given as a duration (6m0s, 1.5s), as
// seconds, as an instant in seconds or milliseconds since 1970, or by RFC 3339.
func untilReset(reset string, clock func() time.Time) time.Duration {
	if n, ok := parse(reset); ok {
		switch {
		case n >= leastEpochMs:
			return until(clock(), n, time.Millisecond)
		case n >= leastEpoch:
			return until(clock(), n, time.Second)
		}
		return number(reset, time.Second)
	}
	if d, err := time.ParseDuration(reset); err == nil {
		return clampWait(float64(d))
	}
	if at, err := time.Parse(time.RFC3339, reset); err == nil {
		return clampWait(float64(at.Sub(clock())))
	}
	return 0
}

// until is the time until n units after 1970.
func until(now time.Time, n float64, unit time.Duration) time.Duration {
	return clampWait(n*float64(unit) - float64(now.UnixNano()))
}

// number is text in units; 0 if it is no number.
func number(text string, unit time.Duration) time.Duration {
	n, _ := parse(text)
	return clampWait(n * float64(unit))
}

// parse reads a number, an infinite one for a number that is too large.
func parse(text string) (n float64, ok bool) {
	if text == "" || strings.ContainsAny(text[len(text)-1:], "smZ") { // a duration or an instant, usually: an error of strconv allocates
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}

func clampWait(ns float64) time.Duration {
	if !(ns > 0) { // not a number, too
		return 0
	}
	return time.Duration(math.Ceil(min(ns, float64(Longest))))
}
