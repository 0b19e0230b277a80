package httpmw

import (
	"encoding/binary"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"
)

// refuse answers a call in its own protocol, with RESOURCE_EXHAUSTED for 429
// and UNAVAILABLE for 503.
func (p protocol) refuse(w http.ResponseWriter, r *http.Request, a refusal) {
	h := w.Header()
	h.Set("Content-Type", p.contentType)
	status, body := http.StatusOK, ""
	switch p.kind {
	case grpc:
		// An answer without a body, whose header fields are the trailers too
		// ("Trailers-Only"): metadata sent before would keep the client from
		// retrying.
		h.Set("Grpc-Status", grpcCode(a.status))
		h.Set("Grpc-Message", titleOf(a.status))
		if a.pushback == 0 {
			a.pushback = pushback(r, a.retry, time.Now())
		}
		h.Set("Grpc-Retry-Pushback-Ms", strconv.FormatInt(a.pushback, 10))
	case connectUnary:
		status, body = a.status, connectError(a.status)
	case connectStream:
		body = endOfStream(`{"error":` + connectError(a.status) + `}`)
	}
	w.WriteHeader(status)
	if body != "" && r.Method != http.MethodHead {
		_, _ = io.WriteString(w, body) // a client that does not listen is its own loss
	}
}

func grpcCode(status int) string {
	if status == http.StatusTooManyRequests {
		return "8" // RESOURCE_EXHAUSTED
	}
	return "14" // UNAVAILABLE
}

// connectError is a Connect error in JSON.
func connectError(status int) string {
	code := "unavailable"
	if status == http.StatusTooManyRequests {
		code = "resource_exhausted"
	}
	return `{"code":"` + code + `","message":"` + titleOf(status) + `"}`
}

// endOfStream wraps the last message of a Connect stream: flags, length,
// message.
func endOfStream(message string) string {
	const lastMessage = 0b10
	b := binary.BigEndian.AppendUint32([]byte{lastMessage}, uint32(len(message)))
	return string(append(b, message...))
}

// pushback is when a gRPC client may retry, in milliseconds: -1 for never,
// which is also said when its deadline comes first.
func pushback(r *http.Request, retry int64, now time.Time) int64 {
	left := time.Duration(math.MaxInt64)
	if deadline, ok := r.Context().Deadline(); ok {
		left = deadline.Sub(now)
	}
	if timeout, ok := grpcTimeout(r.Header.Get("Grpc-Timeout")); ok {
		left = min(left, timeout)
	}
	if retry <= 0 || retry > int64(left/time.Second) {
		return -1
	}
	return min(retry, math.MaxInt32/1000) * 1000
}

// grpcTimeout parses the field: at most eight digits and a unit.
func grpcTimeout(s string) (time.Duration, bool) {
	if len(s) < 2 || len(s) > 9 {
		return 0, false
	}
	unit, ok := map[byte]time.Duration{
		'H': time.Hour, 'M': time.Minute, 'S': time.Second,
		'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
	}[s[len(s)-1]]
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
	if !ok || err != nil {
		return 0, false
	}
	if n > uint64(math.MaxInt64)/uint64(unit) {
		return math.MaxInt64, true
	}
	return time.Duration(n) * unit, true
}
