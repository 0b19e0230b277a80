package client

import (
	"net/http"
	"strings"
	"time"

	"github.com/sluice-go/sluice/internal/serverwait"
)

// QuotaWait reads the fields without a standard in which many services say when a quota
// is back, for [WithServerWait]:
//
//   - if nothing remains (x-ratelimit-remaining, x-ratelimit-remaining-tokens,
//     NAME-ratelimit-requests-remaining), the time until the reset, in the field with
//     "reset" in place of "remaining": seconds, a duration ("6m0s"), seconds or
//     milliseconds since 1970, or RFC 3339; the longest of several;
//   - on 4xx and 5xx, retry-after-ms, or else x-ms-retry-after-ms and Retry-After.
//
// Instants are compared with the Date of the answer if it has one. Malformed
// fields are ignored, and those of an answer from a cache (Age above 0) except Retry-After:
// they are about an earlier call, perhaps of another client.
func QuotaWait(resp *http.Response) (d time.Duration) {
	failed := resp.StatusCode >= http.StatusBadRequest
	if !fromCache(resp.Header) {
		d = serverwait.Quota(resp.Header, failed, clockOf(resp.Header))
	}
	if failed && len(resp.Header["Retry-After-Ms"]) == 0 {
		d = max(d, retryAfter(resp.Header))
	}
	return d
}

// fromCache reports whether a cache has kept the answer for a time.
func fromCache(h http.Header) bool {
	return strings.Trim(h.Get("Age"), "0") != ""
}

// clockOf reads the server's clock: the Date of an answer, or without one this process' clock.
func clockOf(h http.Header) func() time.Time {
	return func() time.Time {
		if date, err := http.ParseTime(h.Get("Date")); err == nil {
			return date
		}
		return time.Now()
	}
}

// waitIn is the wait that an answer asks for: on 403, 429 and 503, Retry-After-Ms if it
// is there; else the longer one of Retry-After on these, and of the RateLimit fields
// where nothing remains, unless the answer is from a cache.
func waitIn(resp *http.Response) (d time.Duration) {
	switch resp.StatusCode {
	case http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if wait, ok := serverwait.Parse(resp.Header.Get("Retry-After-Ms"), "ms"); ok {
			return wait
		}
		d = retryAfter(resp.Header)
	}
	if fromCache(resp.Header) {
		return d
	}
	if left := resp.Header["Ratelimit-Remaining"]; len(left) > 0 { // until draft 6
		separate := map[string][]string{"Ratelimit-Remaining": left, "Ratelimit-Reset": resp.Header["Ratelimit-Reset"]}
		d = max(d, serverwait.Quota(separate, false, clockOf(resp.Header)))
	}
	return max(d, waitUntilMore(resp.Header["Ratelimit"]))
}

// statedRate is the least rate, in units a second, of the quotas that an answer states; 0 if it
// states none, or is from a cache: q units in w seconds of RateLimit-Policy, unless they count
// bytes (until draft 7: q;w=w), and what remains until the reset in the fields that [QuotaWait] reads.
func statedRate(resp *http.Response) (perSecond float64) {
	if fromCache(resp.Header) {
		return 0
	}
	least := func(units, seconds float64) {
		if rate := units / seconds; units > 0 && seconds > 0 && (perSecond == 0 || rate < perSecond) {
			perSecond = rate
		}
	}
	var policies []parameters
	lines := resp.Header["Ratelimit-Policy"]
	if readList(lines, func(p parameters) { policies = append(policies, p) }) && !strings.Contains(strings.Join(lines, ","), "content-bytes") {
		for _, p := range policies {
			least(float64(p["q"]), float64(p["w"]))
		}
	}
	serverwait.Quotas(resp.Header, clockOf(resp.Header), least)
	return perSecond
}

// maxField is how much of a field is read.
const maxField = 4096

// forms are the names of what remains of a quota, and of the seconds until more does: of drafts 8 to
// 11, of the one after, and of draft 7.
var forms = [...]struct{ left, seconds string }{{"r", "t"}, {"a", "w"}, {"remaining", "reset"}}

// waitUntilMore is the longest time until more in the RateLimit fields of the limits of which nothing
// remains. Lines that are not well-formed together, as those of several drafts, are read one by one.
func waitUntilMore(lines []string) (d time.Duration) {
	if total(lines) > maxField {
		return 0
	}
	d, well := wellFormed(lines)
	for i := 0; !well && i < len(lines); i++ {
		one, _ := wellFormed(lines[i : i+1])
		d = max(d, one)
	}
	return d
}

// wellFormed is the wait of a list or of a dictionary, 0 and false if lines are neither.
func wellFormed(lines []string) (d time.Duration, well bool) {
	read := func(p parameters) {
		for _, form := range forms {
			if left, ok := p[form.left]; ok {
				if left <= 0 {
					d = max(d, wholeSeconds(p[form.seconds]))
				}
				return
			}
		}
	}
	if readList(lines, read) {
		return d, true
	}
	d = 0
	all, well := structured(strings.Join(lines, ",")).dictionary()
	if well {
		read(all)
	}
	return d, well
}

// readList calls each for every member of a list that is not too long. It is false if the list is
// not well-formed.
func readList(lines []string, each func(parameters)) bool {
	return total(lines) <= maxField && structured(strings.Join(lines, ",")).items(each)
}

func total(lines []string) (bytes int) {
	for _, line := range lines {
		bytes += len(line)
	}
	return bytes
}

// retryAfter parses the field (RFC 9110 section 10.2.3): seconds, which some servers send
// with a fraction, or a date, which is compared with the server's own clock if the answer has a Date;
// the longest of several lines, which a proxy may have added.
func retryAfter(h http.Header) (d time.Duration) {
	for _, value := range h["Retry-After"] {
		if wait, ok := serverwait.Parse(value, "s"); ok {
			d = max(d, wait)
		} else if at, err := http.ParseTime(value); err == nil {
			d = max(d, at.Sub(clockOf(h)()))
		}
	}
	return d
}

func wholeSeconds(s int64) time.Duration {
	return time.Duration(min(max(s, 0), int64(serverwait.Longest/time.Second))) * time.Second
}
