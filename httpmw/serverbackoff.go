package httpmw

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/sluice-go/sluice/internal/admission"
)

const (
	defaultMaxServers = admission.DefaultServers
	maxServerWait     = admission.MaxServerWait
)

// WithMaxServers sets for how many pairs of host and key a transport remembers
// that the server asked it to wait, 1 or more; the default is 1024. Beyond that
// number, the pair whose wait ends first is forgotten.
func WithMaxServers(n int) Option {
	return newOption("WithMaxServers", func(s *settings) error {
		s.Own.maxServers = n
		if n < 1 {
			return fmt.Errorf("is %d, want 1 or more", n)
		}
		return nil
	})
}

// waitIn is the wait that an answer asks for: on 429 and 503, Retry-After-Ms if it
// is there; else the longer one of Retry-After on 429 and 503, and of RateLimit
// where nothing remains.
func waitIn(resp *http.Response, now time.Time) (d time.Duration) {
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		if ms, err := strconv.ParseUint(resp.Header.Get(retryAfterMsField), 10, 63); err == nil {
			return time.Duration(min(ms, uint64(maxServerWait/time.Millisecond))) * time.Millisecond
		}
		d = retryAfter(resp.Header, now)
	}
	return max(d, waitUntilMore(resp.Header[limitField]))
}

// maxField is how much of a field is read.
const maxField = 4096

// waitUntilMore is the longest t in the RateLimit fields of the limits of which
// nothing remains. A field that is not well-formed is ignored as a whole.
func waitUntilMore(lines []string) (d time.Duration) {
	size := 0
	for _, line := range lines {
		if size += len(line); size > maxField {
			return 0
		}
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return 0
	}
	for _, member := range list {
		item, isItem := member.(httpsfv.Item)
		if _, isString := item.Value.(string); !isItem || !isString {
			return 0
		}
		r, hasR := item.Params.Get("r")
		t, _ := item.Params.Get("t")
		left, isNumber := r.(int64)
		after, _ := t.(int64)
		if hasR && isNumber && left <= 0 {
			d = max(d, wholeSeconds(after))
		}
	}
	return d
}

// retryAfter parses the field (RFC 9110 section 10.2.3): seconds, or a date,
// which is compared with the server's own clock if the answer has a Date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get(retryAfterField)
	if s, err := strconv.ParseUint(value, 10, 63); err == nil {
		return wholeSeconds(int64(s))
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return at.Sub(now)
}

func wholeSeconds(s int64) time.Duration {
	return time.Duration(min(max(s, 0), int64(maxServerWait/time.Second))) * time.Second
}
