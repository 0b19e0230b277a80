package httpmw

import (
	"net/http"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// The X-RateLimit fields that many services send. They have no standard and
// room for one limit only.
const (
	legacyLimit     = "X-Ratelimit-Limit"
	legacyRemaining = "X-Ratelimit-Remaining"
	legacyReset     = "X-Ratelimit-Reset"
)

// advertiseLegacy sets the fields, unless a tighter limit has set them before.
func advertiseLegacy(h http.Header, d *algo.Decision, mode HeadersMode) {
	if before := h[legacyRemaining]; len(before) > 0 {
		left, err := strconv.ParseInt(before[0], 10, 64)
		if err == nil && left <= d.Remaining {
			return
		}
	}
	var buf [3 * 20]byte
	b := appendNumber(buf[:0], d.Limit)
	i := len(b)
	b = appendNumber(b, d.Remaining)
	j := len(b)
	b = appendNumber(b, resetValue(d.ResetAfter, mode))
	text := string(b)
	values := &[3]string{text[:i], text[i:j], text[j:]}
	h[legacyLimit] = values[0:1:1]
	h[legacyRemaining] = values[1:2:2]
	h[legacyReset] = values[2:3:3]
}

// resetValue is the seconds until the whole quota is there again, or the
// instant of it, rounded up.
func resetValue(after time.Duration, mode HeadersMode) int64 {
	if mode != LegacyEpoch {
		return seconds(after)
	}
	at := time.Now().Add(after)
	if at.Nanosecond() > 0 {
		return at.Unix() + 1
	}
	return at.Unix()
}
