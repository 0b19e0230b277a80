package httpmw

import (
	"net/http"
	"strconv"
	"strings"
)

// The types and titles are those of draft-ietf-httpapi-ratelimit-headers.
const (
	quotaType     = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	quotaTitle    = "Request cannot be satisfied as assigned quota has been exceeded"
	capacityType  = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	capacityTitle = "Request cannot be satisfied due to temporary server capacity constraints"

	problemType = "application/problem+json"
	plainType   = "text/plain; charset=utf-8"
)

func titleOf(status int) string {
	if status == http.StatusTooManyRequests {
		return quotaTitle
	}
	return capacityTitle
}

// problemBody renders problem details (RFC 9457). The names are those of
// policies, which need no escaping; nothing of the request is in it.
func problemBody(status int, violated ...string) string {
	kind := capacityType
	if status == http.StatusTooManyRequests {
		kind = quotaType
	}
	b := []byte(`{"type":"` + kind + `","title":"` + titleOf(status) + `","status":`)
	b = strconv.AppendInt(b, int64(status), 10)
	if len(violated) > 0 {
		b = append(b, `,"violated-policies":["`+strings.Join(violated, `","`)+`"]`...)
	}
	return string(append(b, "}\n"...))
}

// failedBody answers requests that could not be decided.
var failedBody = problemBody(http.StatusServiceUnavailable)

func plainBody(status int) string {
	if status == http.StatusTooManyRequests {
		return quotaTitle + ".\n"
	}
	return capacityTitle + ".\n"
}
